"""Tests the functions that ToolGen's models learn from, and those that no model may learn from, on
a few small packages.
"""

from functools import cache

import pytest
from doors import refused

from lookuplab.paths import write_text
from lookuplab_notebooks.toolgen.paper_tables import listed_functions
from recipes.mini import toolgen

DEFINED = '''def f{0}(a, b):
    """Add the number {0} to both."""
    first = a + {0}
    return first, b + {0}


class C{0}:
    def one(self, items):
        """Give all items of {0}."""
        found = [item + {0} for item in items]
        return found

    def two(self, items):
        """Count the items of {0}."""
        total = len(items) * {0}
        return total


'''
# the held-out repository also has the functions with these numbers, indented by tabs
AGAIN = 7, 107, 207


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Let the sources be the packages ``one`` and ``two``, and hold out the repository ``kept``."""
    files = {
        f"{'one' if n < 100 else 'two'}/code{n}.py": map(DEFINED.format, range(n, n + 20))
        for n in range(0, 300, 20)
    } | {
        "two/cloud.py": ["import boto3\n", DEFINED.format(900)],
        "two/tests/test_code.py": [DEFINED.format(901)],
        "certifi/core.py": [DEFINED.format(902)],
        "kept/code.py": (DEFINED.format(n).replace("    ", "\t") for n in AGAIN),
    }
    for name, texts in files.items():
        write_text(tmp_path / name, "".join(texts))
    monkeypatch.setenv("LOOKUPLAB_SOURCES", str(tmp_path))
    monkeypatch.setattr(toolgen, "HELD_OUT_PACKAGES", ("kept",))
    monkeypatch.setattr(toolgen, "PER_REPOSITORY", 200)
    for name in ("functions", "held_out_codes", "tokenizer"):
        monkeypatch.setattr(toolgen, name, cache(getattr(toolgen, name).__wrapped__))


@pytest.mark.usefixtures("world")
def test_no_training_has_code_of_a_held_out_repository_class_or_function():
    known = toolgen.training_functions()
    learned = toolgen.learned_functions()
    left_out = {toolgen.split_of(one.id) for one in (*known, *learned)} - {"training"}
    assert not left_out and len(known) > 400
    texts = "".join(one.body + "\n" for one in (*known, *learned))
    # held out, or in a cloud file, a test or a package under a copyleft licence
    for number in (*AGAIN, 900, 901, 902):
        assert f"+ {number}\n" not in texts
    trained = {*map(toolgen.code_hash, known)}
    asked = toolgen.held_out_functions()
    assert len(asked) > 10 and {toolgen.split_of(one.id) for one in asked} == {"test"}
    assert trained.isdisjoint(map(toolgen.code_hash, asked))


def test_the_split_is_that_of_the_whole_class_or_function():
    drawn = [toolgen.split_of(f"p/a.py:C{n}.f#1") for n in range(4000)]
    assert drawn == [toolgen.split_of(f"p/a.py:C{n}.g.<locals>#77") for n in range(4000)]
    assert 150 < drawn.count("test") < 250


@pytest.mark.usefixtures("world")
def test_a_list_of_ids_gives_the_functions_back_in_its_order(tmp_path):
    asked = toolgen.held_out_functions()
    file = tmp_path / "seen.txt"
    file.write_text("".join(f"{one.id}\n" for one in asked))
    assert listed_functions(file) == asked and listed_functions(file, limit=3) == asked[:3]


def test_the_committed_list_is_of_functions_of_the_test_split():
    file = toolgen.TOOLGEN_MODELS / "seen_test.txt"
    ids = file.read_text().splitlines()
    assert len(ids) == toolgen.HELD_OUT and ids == sorted(ids, key=toolgen.order)
    assert {toolgen.split_of(id) for id in ids} == {"test"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": 1}', "is not a function's id"),
        ("click/no_such.py:f#1", "files that do not exist: .*no_such.py"),
        ("click/core.py:f#1", "none of the 1 ids"),
        ("no_such/a.py:f#1", "no_such"),
    ],
)
def test_a_list_of_functions_that_are_not_there_is_refused_in_one_line(tmp_path, line, message):
    file = tmp_path / "seen.txt"
    file.write_text(line + "\n")
    with refused(message):
        listed_functions(file)
