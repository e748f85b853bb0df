"""Tests how similar a generated function is to its reference. The expected scores are computed by
hand or by other packages.
"""

import inspect
import os
import sys
import textwrap
from itertools import pairwise

import numpy as np
import parso.utils
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.toolgen.rules import PACKAGE_RULES, PAPER_RULES
from lookuplab.toolgen.similarity import (
    COMPONENTS,
    KEYWORDS,
    bleu,
    bleu_counts,
    code_bleu,
    code_bleu_counts,
    components,
    identifiers,
    similarities,
    strip_comments,
)

FUNCTIONS = (
    "split_lines python_bytes_to_unicode _parse_version parse_version_string version_info".split()
)
FLOW = "x = 1\ny = x\nreturn y"
BRANCHES = "if a:\n    x = a\nelif b:\n    x = b\nelse:\n    x = c\ny = x"


def coded(*pairs, rules=PAPER_RULES):
    """Return (CodeBLEU, its four components) of a corpus of (predicted, reference) pairs."""
    sums = np.array([code_bleu_counts(*pair, rules) for pair in pairs], dtype=float).sum(axis=0)
    return code_bleu(sums), components(sums)


def test_a_missing_data_flow_is_not_scored_or_0_in_the_package_and_one_that_disagrees_wholly_is_0():
    missing = ("pass", "return 1")
    wrong = ("pass", FLOW)
    same = ("return 1", "return 1")
    assert np.isnan(coded(missing)[1][3]) and coded(missing)[0] == 0
    assert coded(wrong)[1][3] == 0 and coded(wrong)[0] == 0
    assert coded((FLOW, FLOW), wrong, missing)[1][3] == 0.5
    assert coded(same, rules=PACKAGE_RULES)[0] == pytest.approx(0.75 * coded(same)[0])


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="codebleu does not read on in broken code, or has no wheel"
)
def test_components_equal_those_of_the_package_codebleu_on_real_functions_and_on_a_corpus():
    """Each function of a package is compared with the next one. The first two thirds of each, and a
    version of each with syntax errors, are compared with the whole function.
    """
    import codebleu

    words = codebleu.codebleu.PACKAGE_DIR / "keywords" / "python.txt"
    assert set(words.read_text(encoding="utf-8").split()) == KEYWORDS
    found = [inspect.getsource(getattr(parso.utils, name)) for name in FUNCTIONS]
    cut = [(text[: len(text) * 2 // 3], text) for text in found]
    broken = [(text.replace("(", "[", 1), text.replace(":", "", 2)) for text in found]
    pairs = [*pairwise(found), *cut, *broken]
    none = ("pass", "x")
    short = ("x", "x y")
    quoted = ("self.x = 'y'\na = b",) * 2
    branched = (BRANCHES, BRANCHES.replace("x = b", "x = a"))
    for corpus in [*([pair] for pair in (*pairs, none, short, quoted, branched)), pairs]:
        predicted, wanted = zip(*corpus, strict=True)
        theirs = codebleu.calc_codebleu(wanted, predicted, "python")
        expected = [theirs[f"{name}_match_score"] for name in COMPONENTS]
        assert np.nan_to_num(coded(*corpus)[1]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('def f():\n    """said"""\n\n    # why\n    return 1', "def f():\n    return 1"),
        ("x = 1 + \\\n    y", "x = 1 +    y"),
        ("f'''a\n{b!r}'''\nx = f'{y}# {z}'", "x = f'{y}# {z}'"),
        ("x = 'a #b\ny #c\nz", "x = 'a \ny \nz"),
        ("x = 'a\\\n#b' 'c\\\n#d\ny", "x = 'a\\\n#b' 'c\\\n#d\ny"),
        ("x = (1, #c\n  2", "x = (1, #c\n  2"),
        ('x = """a\ny #c', 'x = """a\ny #c'),
        ("if x:\n    y\n  z #c", "if x:\n    y\n  z #c"),
    ],
)
def test_comments_and_docstrings_are_taken_out_as_python_3_11_reads_them(text, expected):
    """Python 3.11's tokenizer reads on after a string without a closing quote. It fails on an open
    bracket or an unfinished long string, for example; such a text keeps its comments.
    """
    assert strip_comments(text) == expected


def test_code_bleu_does_not_depend_on_the_hash_seed(run_python):
    script = """
from lookuplab.toolgen.similarity import code_bleu_counts
loops = "while a > b:\\n  a, c = c - a, d + a + b", "while a > c:\\n  a, b = b - a, d + a + c"
print(code_bleu_counts(*loops))"""
    seeds = [os.environ | {"PYTHONHASHSEED": seed} for seed in "01"]
    assert len({run_python(script, env=env) for env in seeds}) == 1


def test_a_body_is_scored_as_if_it_stood_at_the_margin():
    texts = "x = a.b\nfor y in x:\n    y.c = x\n", "x = a\nfor y in x:\n    y.c = x\n"
    moved = (textwrap.indent(text, " " * by) for text, by in zip(texts, (8, 4), strict=True))
    assert code_bleu_counts(*moved) == code_bleu_counts(*texts)


def test_identifiers_are_names_in_order_even_of_a_text_that_ends_in_the_middle():
    text = "if a.b(c, 'd'):  # e\n    return f'{g!r}i{h:j}'"
    assert identifiers(text) == ["a", "b", "c", "g", "h"]
    assert identifiers("for x in self.items(\n    y[z") == ["x", "self", "items", "y", "z"]


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("add", "add(y)", (True, 0.5, 0.25)),
        ("remove(x)", "add(x)", (False, 0, 0)),
        ("a(b).c + e", "a(b).d + e", (True, 0.5, 0.625)),
        ("a", "", (None, None, None)),
    ],
)
def test_sequences_match_up_to_their_first_difference(prediction, reference, expected):
    found = similarities(prediction, reference, "", "", PAPER_RULES)
    names = "next_identifier", "identifier_sequence", "prefix"
    assert tuple(found[name] for name in names) == expected


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_has_a_similarity(prediction, reference):
    assert 0 <= bleu(np.array(bleu_counts(prediction, reference), dtype=float)) <= 1
    assert 0 <= coded((prediction, reference))[0] <= 1 + 1e-9
    found = similarities(reference, reference, prediction, reference, PAPER_RULES)
    assert 0 <= found["edit_similarity"] <= 1 and found["prefix"] in (1, None)


def test_a_tree_of_any_depth_is_compared():
    """Models that repeat themselves write such lines: ``return x + x + x + ...``."""
    _, (_, _, syntax, _) = coded(("return x" + " + x" * 1100, "return x" + " + x" * 1099))
    assert 0 < syntax < 1
