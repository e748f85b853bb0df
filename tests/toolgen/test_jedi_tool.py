"""The completion tool survives what Jedi does not: calls that hang, crash or fail cost one worker and are counted."""

import os
import signal

import pytest

from lookuplab.toolgen import jedi_tool
from lookuplab.toolgen.jedi_tool import Answer, JediTool, Worker

TEXT = "class A:\n    def __init__(self):\n        self.field = 1\n\n    def f(self, n):\n        self."


@pytest.fixture
def worker():
    worker = Worker()
    yield worker
    worker.close()


def test_an_unsaved_buffer_is_completed_and_edits_are_seen(worker, tmp_path):
    (tmp_path / "other.py").write_text("def helper(alpha): pass\n")
    names = worker.complete(tmp_path, "module.py", TEXT, 6, 13).names
    assert "field" in names and "f" in names
    edited = TEXT.replace("field", "renamed")
    names = worker.complete(tmp_path, "module.py", edited, 6, 13).names
    assert "renamed" in names and "field" not in names
    assert "helper" in worker.complete(tmp_path, "module.py", "import other\nother.", 2, 6).names


def test_asking_for_one_name_finds_it_exactly_when_the_full_answer_holds_it(worker, tmp_path):
    text = TEXT.replace("self.field = 1", "self.field = 1\n        self.__hidden = 2") + "\n"
    full = worker.complete(tmp_path, "module.py", text, 7, 13).names
    for name in ("field", "f", "__hidden", "n", "A", "missing", "__init__", "__class__"):
        assert (name in worker.complete(tmp_path, "module.py", text, 7, 13, wanted=name).names) == (name in full), name


def test_a_parameter_is_known_from_callers_in_the_repository_and_not_from_beside_it(worker, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    text = "def inside(thing):\n    pass\n\ndef outside(thing):\n    thing."
    (package / "caller.py").write_text("from package.module import inside\ninside('')\n")
    (tmp_path / "beside.py").write_text("from package.module import outside\noutside('')\n")
    assert "upper" not in worker.complete(package, "module.py", text, 5, 10).names
    swapped = text.replace("inside", "_").replace("outside", "inside")
    assert "upper" in worker.complete(package, "module.py", swapped, 5, 10).names


def test_identifiers_are_names_without_the_equals_sign_and_without_dict_keys():
    assert Answer(("alpha=", "beta", "'key'", "beta")).identifiers == ["alpha", "beta"]


def test_a_crash_costs_one_call_and_a_new_process_takes_the_next(worker, tmp_path):
    worker.complete(tmp_path, "module.py", TEXT, 6, 13)
    os.kill(worker._process.pid, signal.SIGSTOP)
    worker.time_limit = 0.2
    assert worker.complete(tmp_path, "module.py", TEXT, 6, 13).failure == "timed out"
    worker.time_limit = 20
    assert "field" in worker.complete(tmp_path, "module.py", TEXT, 6, 13).names
    worker._process.kill()
    worker._process.wait()
    assert "field" in worker.complete(tmp_path, "module.py", TEXT, 6, 13).names
    assert worker.failures == {"timed out": 1}


def test_a_call_that_takes_too_long_is_given_up_and_its_worker_goes_on(worker, tmp_path):
    for name in ("first", "second"):
        code = "".join(f"def {name}_{n}(a, b=[{n}]):\n    return a\n" for n in range(2000))
        (tmp_path / f"{name}.py").write_text(code)
    text = "import first\nimport second\nsecond."
    assert "first_1999" in worker.complete(tmp_path, "module.py", "import first\nfirst.", 2, 6).names
    process, worker.time_limit = worker._process, 0.01
    assert worker.complete(tmp_path, "module.py", text, 3, 7).failure == "timed out"
    worker.time_limit = 20
    assert "second_1999" in worker.complete(tmp_path, "module.py", text, 3, 7).names
    assert worker._process is process and worker.failures == {"timed out": 1}


def test_a_module_that_ends_the_process_that_imports_it_is_counted_as_crashed(worker, tmp_path, monkeypatch):
    (tmp_path / "gi.py").write_text("import os\nos.abort()\n")  # Jedi imports this one, for what it makes at run time
    monkeypatch.setenv("LOOKUPLAB_SOURCES", str(tmp_path))
    assert worker.complete(tmp_path, "module.py", "import gi\ngi.", 2, 3).failure == "crashed"
    assert "x" in worker.complete(tmp_path, "module.py", "x = 1\n", 2, 0).names


def test_a_tree_that_was_saved_in_part_is_parsed_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "other.py").write_text("alpha = 1\n")
    for part in (-10, 0, None):
        worker = Worker()
        answer = worker.complete(tmp_path, "module.py", "import other\nother.", 2, 6)
        worker.close()
        assert "alpha" in answer.names, answer.failure
        [saved] = (tmp_path / "cache").rglob("*.pkl")
        saved.write_bytes(saved.read_bytes()[:part])


def test_a_worker_that_has_parsed_a_file_is_asked_about_it_again(tmp_path):
    with JediTool(2) as tool:
        for file in ("a.py", "b.py"):
            with tool.lease(tmp_path, file) as worker:
                worker.complete(tmp_path, file, "x = 1\n", 2, 0)
        with tool.lease(tmp_path, "b.py") as second, tool.lease(tmp_path, "a.py") as first:
            assert (str(tmp_path), "a.py") in first.places
            assert (str(tmp_path), "b.py") in second.places and first is not second
        with tool.lease(tmp_path, "a.py") as first, tool.lease(tmp_path, "a.py") as other:
            assert first is not other


def test_a_worker_that_dies_in_its_call_is_counted_as_crashed(worker, tmp_path, monkeypatch):
    monkeypatch.setattr(jedi_tool, "_START", "print('ready', flush=True); input(); import os; os._exit(1)")
    assert worker.complete(tmp_path, "module.py", TEXT, 6, 13).failure == "crashed"
    monkeypatch.undo()
    assert "field" in worker.complete(tmp_path, "module.py", TEXT, 6, 13).names


def test_an_error_of_jedi_is_an_answer_and_the_process_stays(worker, tmp_path):
    assert worker.complete(tmp_path, "module.py", "x = 1\n", 99, 0).failure == "error in Jedi: ValueError"
    process = worker._process
    assert "x" in worker.complete(tmp_path, "module.py", "x = 1\n", 2, 0).names
    assert worker._process is process


def test_a_tool_counts_the_failures_of_all_its_workers(tmp_path):
    with JediTool(2) as tool:
        with tool.lease() as first, tool.lease() as second:
            for worker in (first, second):
                worker.complete(tmp_path, "module.py", "x = 1\n", 99, 0)
        assert tool.failures == {"error in Jedi: ValueError": 2}


@pytest.fixture
def asked(monkeypatch):
    """The columns of the questions that reach a worker."""
    columns, complete = [], Worker.complete
    monkeypatch.setattr(Worker, "complete", lambda self, root, file, text, line, column, wanted=None:
                        columns.append(column) or complete(self, root, file, text, line, column, wanted))
    return columns


def test_what_jedi_has_answered_the_next_tool_need_not_ask(tmp_path, asked):
    answers = []
    for store in (tmp_path / "kept.sqlite", tmp_path / "kept.sqlite", False):
        with JediTool(1, store=store) as tool:
            answers += [tool.complete(tmp_path, "module.py", TEXT, 6, 13) for _ in range(2)]
    assert asked == [13, 13] and "field" in answers[0].names and len(set(answers)) == 1


def test_another_file_in_the_repository_asks_again(tmp_path, asked):
    (tmp_path / "other.py").write_text("alpha = 1\n")
    for name in ("alpha", "beta"):
        (tmp_path / "other.py").write_text(f"{name} = 1\n")
        with JediTool(1, store=tmp_path / "kept.sqlite") as tool:
            assert name in tool.complete(tmp_path, "module.py", "import other\nother.", 2, 6).names
    assert asked == [6, 6]
