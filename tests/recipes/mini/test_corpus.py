"""Tests the mini corpus: counts are exact, invented APIs are documented, code parses, and no text
has the wording of a benchmark comment or anything else that is held out.
"""

import ast
import re
from collections import Counter

import pytest

from lookuplab.cloudapi.specs import load_index
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab_notebooks.mini.training_count import SHOWN_COUNTS
from recipes.mini import corpus, packages
from recipes.mini.corpus import invented_documents, pools, reserved, usage_documents

HELD = next(f"f{i}" for i in range(100) if packages.example_split(f"numpy.f{i}") == "test")
DEFINED = 'def {0}(a):\n    """Title.\n\n    >>> {0}([1])\n    1\n\n    Notes\n    """\n'


@pytest.fixture(scope="module")
def usage():
    """Return (counts, documents) for some of the benchmark's APIs, of every class."""
    some = {task.target: min(task.count_name, 60) for task in load_tasks()[::40]}
    return some, list(usage_documents(some))


@pytest.fixture(scope="module")
def invented():
    return list(invented_documents(300))


def test_no_two_drawn_apis_share_a_name_and_those_that_no_task_asks_for_are_rare():
    found = pools()
    names = [api.rpartition(".")[2] for pool in found.values() for api in pool]
    assert len(set(names)) == len(names) == 2_350
    assert {*found["background"].values()} == {*range(1, 11)}
    assert corpus.HIGHEST_COUNT["asked"] == SHOWN_COUNTS[-1], "the curves end where the counts do"


def test_the_draw_gives_the_committed_tasks():
    for path, tasks in corpus.build_tasks().items():
        assert load_tasks(path) == tasks


def test_the_arms_differ_only_in_documentation_that_lacks_the_called_api(usage):
    counts, documents = usage
    other = dict(usage_documents(counts, arm=50))
    lacking = [source for source, text in documents if other[source] != text]
    for source in lacking:
        assert f"API name: {source.split('@')[0].rsplit('.', 1)[1]}\n" not in other[source]
    documented = [text for _, text in documents if "API name: " in text]
    assert 0.3 < len(lacking) / len(documented) < 0.7
    assert 0.15 < len(documented) / len(documents) < 0.35


def test_an_api_is_called_exactly_as_often_as_assigned(usage):
    counts, documents = usage
    called = Counter()
    for source, text in documents:
        api = source.split("@")[0]
        for node in ast.walk(ast.parse(text)):
            function = getattr(node, "func", None)
            called[api] += getattr(function, "attr", "") == api.rpartition(".")[2]
    assert called == Counter(counts)


def test_every_document_is_valid_python_without_a_benchmark_comment(usage, invented):
    for source, text in usage[1] + invented:
        assert not reserved(text), source
        ast.parse(text)


def test_no_invented_api_exists_or_is_called_twice_and_each_is_documented(invented):
    names = []
    for _, text in invented:
        called = re.findall(r"client\.(\w+)\(", text.rsplit('"""', 1)[1])
        assert all(f"API name: {name}\n" in text for name in called)
        names += called
    assert len(set(names)) == len(names)
    assert not set(names) & {spec.name for spec in load_index().specs}


def test_reserved_wording_is_found_whatever_its_case_and_punctuation():
    first, *others = load_tasks()[0].comment.split()
    assert reserved(f"# now {first.upper()} {', '.join(others)}!")
    assert not reserved(f"{first} {' '.join(reversed(others))}")


@pytest.mark.parametrize(
    ("text", "is_cut"),
    [
        (DEFINED.format(HELD), True),
        (DEFINED.format("dot"), False),
        ('X = """Shared.\n\n>>> f(1)\n2"""\n', True),  # the string belongs to no object
        (f'add_newdoc("numpy", "{HELD}",\n"""Title.\n\n>>> {HELD}(1)\n1\n\nEnd\n""")\n', True),
        (f'add_newdoc("numpy", "ndarray", ("{HELD}", """Title.\n\n>>> 1\n1\n"""))\n', True),
    ],
)
def test_examples_of_held_out_objects_alone_are_cut_and_the_module_still_parses(text, is_cut):
    cut = packages.without_held_out_examples(text + "Y = 1\n", "numpy")
    assert (">>>" not in cut) == is_cut and ast.parse(cut).body[1].targets[0].id == "Y"
    assert ("Notes" in cut) == ("Notes" in text)


def test_chunks_spell_the_module_and_cut_before_definitions():
    text = "import os\n\n" + "".join(f"@d\ndef f{i}():\n    return {i}\n\n" for i in range(300))
    pieces = list(packages.chunks(text, 500))
    assert "".join(pieces) == text and max(map(len, pieces)) <= 1000
    assert all(piece.startswith("@d") for piece in pieces[1:])
