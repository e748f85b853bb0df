"""Part (a) of the corpus: what is in it and, above all, what is not."""

import ast
import re

import pytest

from lookuplab.mini import packages


@pytest.fixture(scope="module")
def documents():
    return list(packages.package_documents(2_500_000))


def test_held_out_packages_are_not_in_the_corpus(documents):
    roots = {source.split("/")[1] for source, _ in documents}
    assert not roots & set(packages.HELD_OUT_PACKAGES)
    assert not set(packages.PACKAGES) & set(packages.HELD_OUT_PACKAGES)


def test_no_document_mentions_a_cloud_sdk(documents):
    assert not [source for source, text in documents if re.search(r"boto3|botocore|\bazure\b", text, re.I)]


def test_held_out_docstring_examples_are_not_in_the_corpus():
    for name in ("average", "dot", "convolve", "percentile", "polyfit", "where", "hanning", "median"):
        text = f'def {name}(a):\n    """Title.\n\n    >>> {name}([1])\n    1\n\n    Notes\n    """\n'
        cut = packages.without_held_out_examples(text, "numpy")
        assert (">>>" in cut) != packages.held_out_example(f"numpy.{name}")
        assert "Notes" in cut and ast.parse(cut)


def test_about_a_tenth_is_held_out_and_every_path_to_an_object_agrees():
    share = sum(packages.held_out_example(f"numpy.f{i}") for i in range(5000)) / 5000
    assert 0.08 < share < 0.12
    for i in range(50):
        assert packages.held_out_example(f"pandas.f{i}") == packages.held_out_example(f"pandas.core.frame.DataFrame.f{i}")


def test_an_example_that_ends_with_the_quotes_is_cut_and_the_module_still_parses():
    text = 'X = """Shared.\n\n>>> f(1)\n2"""\nY = 1\n'  # belongs to no object: cut in any case
    cut = packages.without_held_out_examples(text, "pandas")
    assert ">>>" not in cut and ast.parse(cut).body[1].targets[0].id == "Y"


def test_numpy_documents_compiled_objects_through_add_newdoc():
    held = next(f"f{i}" for i in range(100) if packages.held_out_example(f"numpy.f{i}"))
    text = f'add_newdoc("numpy", "{held}",\n"""Title.\n\n>>> {held}(1)\n1\n\nEnd\n""")\n'
    assert ">>>" not in packages.without_held_out_examples(text, "numpy")


def test_only_permissive_licences_pass():
    assert packages.is_permissive("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0")
    assert packages.is_permissive("Apache Software License")
    assert not packages.is_permissive("MPL-2.0 AND MIT")
    assert not packages.is_permissive("")


def test_chunks_spell_the_module_and_cut_before_definitions():
    text = "import os\n\n" + "".join(f"@d\ndef f{i}():\n    return {i}\n\n" for i in range(300))
    pieces = list(packages.chunks(text, 500))
    assert "".join(pieces) == text
    assert all(piece.startswith("@d") for piece in pieces[1:])
    assert max(map(len, pieces)) <= 1000


def test_the_selection_is_the_same_twice():
    first, second = (list(packages.package_documents(100_000)) for _ in range(2))
    assert first == second
