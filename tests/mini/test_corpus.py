"""The mini corpus: exact counts, no benchmark wording, documented inventions, code that parses, nothing held out."""

import ast
import re
from collections import Counter

import pytest

from lookuplab.cloudapi.benchmark import frequency_class, load_tasks
from lookuplab.cloudapi.specs import load_index
from lookuplab.mini import packages
from lookuplab.mini.corpus import POOLS, assign, invented_documents, reserved, usage_documents

HELD = next(f"f{i}" for i in range(100) if packages.held_out_example(f"numpy.f{i}"))


@pytest.fixture(scope="module")
def usage():
    """The documents of some benchmark APIs of every class."""
    counts = assign()
    some = {task.target: counts.get(task.target, 0) for task in load_tasks()[::40]}
    return some, list(usage_documents(some))


@pytest.fixture(scope="module")
def invented():
    return list(invented_documents(300))


def test_counts_lie_in_their_class_and_the_pools_are_full():
    classes = Counter(frequency_class(count) for count in assign().values())
    assert classes == {name: sum(pool.values()) for name, pool in POOLS.items()}


def test_an_api_is_called_exactly_as_often_as_assigned(usage):
    counts, documents = usage
    called = Counter()
    for source, text in documents:
        api = source.split("@")[0]
        calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
        names = [call.func.attr for call in calls if isinstance(call.func, ast.Attribute)]
        called[api] += names.count(api.rsplit(".", 1)[1])
    assert called == Counter({api: n for api, n in counts.items() if n})


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


@pytest.mark.parametrize("name", ["average", "dot", "convolve", "where", "hanning", "median"])
def test_docstring_examples_of_held_out_objects_alone_are_cut(name):
    text = f'def {name}(a):\n    """Title.\n\n    >>> {name}([1])\n    1\n\n    Notes\n    """\n'
    cut = packages.without_held_out_examples(text, "numpy")
    assert (">>>" in cut) != packages.held_out_example(f"numpy.{name}")
    assert "Notes" in cut and ast.parse(cut)


@pytest.mark.parametrize(
    "text",
    [
        'X = """Shared.\n\n>>> f(1)\n2"""\n',  # belongs to no object: cut in any case
        f'add_newdoc("numpy", "{HELD}",\n"""Title.\n\n>>> {HELD}(1)\n1\n\nEnd\n""")\n',
        f'add_newdoc("numpy", "ndarray", ("{HELD}", """Title.\n\n>>> 1\n1\n"""))\n',
    ],
)
def test_examples_outside_of_functions_are_cut_and_the_module_still_parses(text):
    cut = packages.without_held_out_examples(text + "Y = 1\n", "numpy")
    assert ">>>" not in cut and ast.parse(cut).body[1].targets[0].id == "Y"


def test_chunks_spell_the_module_and_cut_before_definitions():
    text = "import os\n\n" + "".join(f"@d\ndef f{i}():\n    return {i}\n\n" for i in range(300))
    pieces = list(packages.chunks(text, 500))
    assert "".join(pieces) == text and max(map(len, pieces)) <= 1000
    assert all(piece.startswith("@d") for piece in pieces[1:])
