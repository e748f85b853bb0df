"""CodeBLEU: its four components, what is missing is not scored, and agreement with the package."""

import ast
import inspect
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from codebleu import calc_codebleu
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.toolgen.metrics.code_bleu import code_bleu, components, pair_counts, score


def test_a_missing_data_flow_is_counted_and_never_scored():
    wrong = code_bleu(["pass"], ["return 1"])
    assert wrong.dataflow is None and wrong.without_dataflow == 1 and wrong.score == 0
    assert code_bleu(["pass"], ["return 1"], "package").score == 0.25


def test_a_data_flow_that_disagrees_wholly_is_0_where_the_package_says_1():
    pair = ["pass"], ["x = 1\ny = x\nreturn y"]
    assert code_bleu(*pair).dataflow == 0 and code_bleu(*pair).score == 0
    assert code_bleu(*pair, "package").score == 0.25


def test_the_mean_data_flow_is_over_the_functions_that_have_one():
    flow = "x = 1\ny = x\nreturn y"
    score = code_bleu([flow, "pass", "pass"], [flow, flow, "return 1"])
    assert (score.mean_dataflow, score.dataflow, score.without_dataflow, score.n) == (0.5, 0.5, 1, 3)


def _functions() -> list[str]:
    tree = ast.parse(source := inspect.getsource(textwrap))
    return [ast.get_source_segment(source, node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def test_the_variant_equals_the_package_on_real_functions():
    found = _functions()
    for prediction, reference in [*zip(found, found[1:], strict=False), (found[0][:200], found[0])]:
        ours, theirs = code_bleu([prediction], [reference], "package"), calc_codebleu(
            [reference], [prediction], "python")
        assert ours.score == pytest.approx(theirs["codebleu"])
        assert ours.ngram == pytest.approx(theirs["ngram_match_score"])
        assert ours.weighted_ngram == pytest.approx(theirs["weighted_ngram_match_score"])
        assert ours.syntax == pytest.approx(theirs["syntax_match_score"])
        assert (ours.dataflow or 0) == pytest.approx(theirs["dataflow_match_score"])


def test_code_bleu_does_not_depend_on_the_hash_seed():
    script = ("from lookuplab.toolgen.metrics.code_bleu import code_bleu\n"
              "print(code_bleu(['a = b + c + d\\ne = a + d + b'], ['a = d + b + c\\ne = a + c + b + a']))")
    texts = {subprocess.run([sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, check=True,
                            capture_output=True, text=True).stdout for seed in "012"}
    assert len(texts) == 1


def test_a_corpus_of_several_functions_equals_the_package_too():
    found = _functions()
    ours, theirs = code_bleu(found[:-1], found[1:], "package"), calc_codebleu(found[1:], found[:-1], "python")
    assert ours.score == pytest.approx(theirs["codebleu"])
    assert (ours.ngram, ours.syntax) == pytest.approx((theirs["ngram_match_score"], theirs["syntax_match_score"]))


def test_a_weighted_corpus_is_the_corpus_with_its_pairs_repeated():
    found = _functions()[:4]
    counts, weights = pair_counts(found[:3], found[1:]), np.array([2, 0, 1])
    repeated = code_bleu([found[0], found[0], found[2]], [found[1], found[1], found[3]])
    assert components(weights @ counts) == pytest.approx([repeated.ngram, repeated.weighted_ngram, repeated.syntax,
                                                          repeated.dataflow])
    assert score(weights @ counts) == pytest.approx(repeated.score)


def test_a_body_is_scored_as_if_it_stood_at_the_margin():
    body = "x = a.b\nfor y in x:\n    y.c = x\n"
    pair = [body, body.replace("a.b", "a")]
    assert code_bleu([textwrap.indent(pair[0], "        ")], [textwrap.indent(pair[1], "    ")]) == code_bleu(
        [pair[0]], [pair[1]])


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_has_a_code_bleu(prediction, reference):
    assert 0 <= code_bleu([prediction], [reference]).score <= 1 + 1e-9
