"""Similarity of a generated function and its reference: hand-computed cases, and agreement with the named packages."""

import ast
import inspect
import os
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pytest
from codebleu import calc_codebleu
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.toolgen.similarity import (
    COMPONENTS,
    bleu,
    bleu_counts,
    code_bleu,
    code_bleu_counts,
    components,
    edit_similarity,
    identifier_metrics,
    identifiers,
)

FLOW = "x = 1\ny = x\nreturn y"


def bleu4(*pairs):
    return bleu(sum(np.array(bleu_counts(*pair), dtype=float) for pair in pairs))


def coded(*pairs, variant="paper"):
    """(score, components) of a corpus."""
    sums = np.array([code_bleu_counts(*pair) for pair in pairs], dtype=float).sum(axis=0)
    return code_bleu(sums, variant), components(sums)


def test_bleu_4_of_one_changed_token_in_eight():
    pair = "def f ( x ) : return x".split(), "def f ( x ) : return y".split()
    # (7+1)/(8+1) * 7/8 * 6/7 * 5/6 = 5/9, and its fourth root
    assert bleu4(pair) == pytest.approx((5 / 9) ** 0.25)
    # of the corpus, not the mean of its functions
    assert bleu4(pair, (["a"], ["b"])) == pytest.approx((8 / 10 * 7 / 8 * 6 / 7 * 5 / 6) ** 0.25)


def test_bleu_4_of_a_short_prediction_is_multiplied_by_the_brevity_penalty():
    assert bleu4(("ab", "abcd")) == pytest.approx(np.exp(-1))  # 1 - 4/2
    assert bleu4(("", "ab")) == 0


def test_a_missing_data_flow_is_not_scored_or_0_in_the_package_and_one_that_disagrees_wholly_is_0():
    missing, wrong, same = ("pass", "return 1"), ("pass", FLOW), ("return 1", "return 1")
    assert np.isnan(coded(missing)[1][3]) and coded(missing)[0] == 0
    assert coded(wrong)[1][3] == 0 and coded(wrong)[0] == 0
    assert coded((FLOW, FLOW), wrong, missing)[1][3] == 0.5
    assert coded(same, variant="package")[0] == pytest.approx(0.75 * coded(same)[0])


def test_components_equal_those_of_the_package_codebleu_on_real_functions_and_on_a_corpus():
    tree = ast.parse(source := inspect.getsource(textwrap))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = [ast.get_source_segment(source, node) for node in nodes]
    pairs = list(pairwise(found))
    cut_off, none, short = (found[0][:200], found[0]), ("pass", "x"), ("x", "x y")
    for corpus in [*([pair] for pair in pairs), [cut_off], [none], [short], pairs]:
        predicted, wanted = zip(*corpus, strict=True)
        theirs = calc_codebleu(wanted, predicted, "python")
        expected = [theirs[f"{name}_match_score"] for name in COMPONENTS]
        assert np.nan_to_num(coded(*corpus)[1]) == pytest.approx(expected)


def test_code_bleu_does_not_depend_on_the_hash_seed():
    script = """
from lookuplab.toolgen.similarity import code_bleu_counts
print(code_bleu_counts("a = b + c + d\\ne = a + d + b", "a = d + b + c\\ne = a + c + b + a"))
print(code_bleu_counts("while a > b:\\n  a, c = c - a, d + a + b", "while a > c:\\n  a, b = b - a, d + a + c"))"""
    command = [sys.executable, "-c", script]
    seeds = [os.environ | {"PYTHONHASHSEED": seed} for seed in "012"]
    assert len({subprocess.check_output(command, env=env) for env in seeds}) == 1


def test_a_body_is_scored_as_if_it_stood_at_the_margin():
    texts = "x = a.b\nfor y in x:\n    y.c = x\n", "x = a\nfor y in x:\n    y.c = x\n"
    moved = (textwrap.indent(text, " " * by) for text, by in zip(texts, (8, 4), strict=True))
    assert code_bleu_counts(*moved) == code_bleu_counts(*texts)


def test_edit_similarity_of_one_changed_word_and_of_other_white_space():
    assert round(edit_similarity("return foo(a)", "return bar(a)")) == 77
    assert edit_similarity("return\n    foo(a)  ", "return foo(a)") == 100


def test_identifiers_are_names_in_order_even_of_a_text_that_ends_in_the_middle():
    assert identifiers("if a.b(c, 'd'):  # e\n    return f'{g}' + h") == ["a", "b", "c", "g", "h"]
    assert identifiers("for x in self.items(\n    y[z") == ["x", "self", "items", "y", "z"]


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("add(x)", "add(y)", (True, 0.5, 0.5)),
        ("remove(x)", "add(x)", (False, 0, 0)),
        ("a(b).c + e", "a(b).d + e", (True, 0.5, 0.625)),
        ("add", "1", (None, None, 0)),
        ("a", "", (None, None, None)),
    ],
)
def test_sequences_match_up_to_their_first_difference(prediction, reference, expected):
    assert tuple(identifier_metrics(prediction, reference).values()) == expected


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_has_a_similarity(prediction, reference):
    assert 0 <= bleu4((prediction, reference)) <= 1
    assert 0 <= edit_similarity(prediction, reference) <= 100
    assert 0 <= coded((prediction, reference))[0] <= 1 + 1e-9
    assert identifier_metrics(reference, reference)["prefix"] in (1, None)
