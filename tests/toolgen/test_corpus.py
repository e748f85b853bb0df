"""The marked corpus: nothing lost silently, taken up after a kill, equal to a run in one go."""

import json

import pytest
from click.testing import CliRunner

from lookuplab.cli import cli
from lookuplab.errors import UserError
from lookuplab.toolgen.corpus import Corpus, build, load, mark_into
from lookuplab.toolgen.files import Repository
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.jedi_tool import Worker

FUNCTION = "def f{0}(a, b):\n    '''Do the thing number {0}.'''\n    total = a + b\n    return total\n\n"


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "my repo"
    folder.mkdir()
    (folder / "good.py").write_text("".join(FUNCTION.format(number) for number in range(4)))
    (folder / "bad.py").write_text("def (\n")
    return Repository("my repo", folder)


def test_each_function_is_one_line_and_what_is_left_out_is_counted(repository, tmp_path):
    corpus = build([repository], tmp_path / "out" / "marked.jsonl", workers=2, progress=False)
    assert [json.loads(line) for line in (tmp_path / "out" / "marked.jsonl").open()] == json.loads(
        json.dumps(corpus.records))
    assert corpus.records[0]["marked_body"] == "    total = <COMP>a + <COMP>b\n    return <COMP>total"
    assert corpus.left_out == {"file: does not parse": 1}
    assert corpus.statistics() == {"functions": 4, "repositories": 1, "docstring tokens": 5, "function tokens": 15,
                                   "marks": 3}


def test_a_run_that_was_killed_goes_on_where_it_ended_and_ends_alike(repository, tmp_path):
    output = tmp_path / "marked.jsonl"
    build([repository], output, workers=1, progress=False)
    whole = output.read_bytes()
    first = whole.split(b"\n")[0] + b"\n"
    told = first.replace(b'"asked": 4', b'"asked": 99')  # a sign that the line is kept and not made anew
    assert told != first
    output.write_bytes(told + whole[len(first):len(first) + 40])
    assert len(load(output)) == 1
    build([repository], output, workers=1, progress=False)
    assert output.read_bytes() == whole.replace(first, told)


def test_a_function_that_changed_is_marked_anew(repository, tmp_path):
    output = tmp_path / "marked.jsonl"
    build([repository], output, workers=1, progress=False)
    good = repository.root / "good.py"
    good.write_text(good.read_text().replace("a + b", "b * a", 1))
    records = build([repository], output, workers=1, progress=False).records
    assert sorted("b * a" in record["source"] for record in records) == [False, False, False, True]
    assert len(load(output)) == 4


def test_functions_of_one_file_go_to_one_worker_and_stand_in_order(repository, tmp_path, monkeypatch):
    for name in ("a.py", "z.py"):
        (repository.root / name).write_text((repository.root / "good.py").read_text().replace("thing", name[0]))
    workers = {}
    real = Worker.complete

    def complete(self, root, file, *args):
        workers.setdefault(file, set()).add(id(self))
        return real(self, root, file, *args)

    monkeypatch.setattr(Worker, "complete", complete)
    output = tmp_path / "marked.jsonl"
    records = build([repository], output, workers=2, progress=False).records
    assert [len(workers[name]) for name in ("a.py", "good.py", "z.py")] == [1, 1, 1]
    places = [(record["file"], record["line"]) for record in records]
    assert len(places) == 12 and places == sorted(places)
    assert [(record["file"], record["line"]) for record in load(output)] == places
    output.write_text("".join(output.read_text().splitlines(keepends=True)[3::2]))  # records of later files alone
    assert [(one["file"], one["line"]) for one in build([repository], output, progress=False).records] == places
    assert [(record["file"], record["line"]) for record in load(output)] == places


def test_a_repository_that_changes_meanwhile_ends_the_run(repository, tmp_path):
    records = mark_into(extract(repository).functions, tmp_path / "marked.jsonl", workers=1)
    (repository.root / "good.py").write_text("def (\n")
    with pytest.raises(UserError, match="must not change during the run"):
        list(records)


def test_a_call_that_fails_is_counted_and_its_function_kept(repository, tmp_path):
    corpus = build([repository], tmp_path / "marked.jsonl", workers=1, time_limit=1e-4, progress=False)
    assert len(corpus.records) == 4 and all(record["asked"] == 4 for record in corpus.records)
    assert corpus.left_out["call: timed out"] == 16


def test_what_breaks_parsers_and_jedi_is_counted_and_the_run_goes_on(repository, tmp_path, monkeypatch):
    (repository.root / "big.py").write_text("call(f0)\n" * 1_000_000)
    (repository.root / "binary.py").write_bytes(bytes(range(256)))
    (repository.root / "circle").symlink_to(repository.root, target_is_directory=True)
    (repository.root / "deep.py").write_text("x = " + "(" * 5_000 + ")" * 5_000 + "\n")
    (repository.root / "crash.py").write_text(
        "import gi\n\ndef use(argument):\n    '''Use what ends the process.'''\n    gi.run()\n    return argument\n")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "gi.py").write_text("import os\nos.abort()\n")  # Jedi imports a module of this name
    monkeypatch.setenv("LOOKUPLAB_SOURCES", str(tmp_path / "site"))
    corpus = build([repository], tmp_path / "marked.jsonl", workers=2, progress=False)
    assert len(corpus.records) == 5
    assert [record["marked_body"] for record in corpus.records if record["file"] == "crash.py"] == [
        "    <COMP>gi.run()\n    return <COMP>argument"]
    assert corpus.left_out == {"file: does not parse": 2, "file: binary": 1, "file: more than 1000000 bytes": 1,
                               "folder: a link": 1, "call: crashed": 1}


def test_repositories_of_one_name_are_refused(repository, tmp_path):
    with pytest.raises(UserError, match="two repositories are called 'my repo'"):
        build([repository, repository], tmp_path / "marked.jsonl", progress=False)


def test_a_file_that_is_no_corpus_is_not_overwritten(repository, tmp_path):
    for text in ("my notes\n", "3\n", '{"id": 1}\n'):
        (tmp_path / "notes.txt").write_text(text)
        with pytest.raises(UserError, match="is no marked corpus"):
            build([repository], tmp_path / "notes.txt", progress=False)
        assert (tmp_path / "notes.txt").read_text() == text


def test_a_corpus_of_other_repositories_is_not_overwritten(repository, tmp_path):
    output = tmp_path / "marked.jsonl"
    build([repository], output, workers=1, progress=False)
    with pytest.raises(UserError, match="holds functions of 'my repo'"):
        build([Repository("other", repository.root)], output, progress=False)
    assert len(load(output)) == 4


def test_an_empty_corpus_has_statistics():
    assert Corpus().statistics()["marks"] == 0


def test_the_command_prints_the_papers_numbers_beside_its_own(repository, tmp_path):
    done = CliRunner().invoke(cli, ["data", "mark", str(repository.root), "-o", str(tmp_path / "marked.jsonl"), "-j1"])
    assert done.exit_code == 0, done.output
    assert "256,870" in done.output and "file: does not parse" in done.output
    assert len(load(tmp_path / "marked.jsonl")) == 4


def test_the_command_refuses_what_is_neither_folder_nor_package(tmp_path):
    done = CliRunner().invoke(cli, ["data", "mark", "no_such_package_here", "-o", str(tmp_path / "marked.jsonl")])
    assert done.exit_code == 2 and "neither a folder nor a package among the sources" in done.output
