"""How instruments are compared with what knows better, and the page that says so."""

import pandas as pd
import pytest

from lookuplab import paths
from lookuplab_notebooks.published import instrument_rows, instrument_table

FENCED = "Words.\n```python\nx = 1\n```\n"


def differences(rows):
    return [row["difference"] for row in rows]


def test_a_fenced_block_is_compared_with_what_markdown_finds():
    """It does not see a fence that closes within a line; a text without a fence is no case."""
    texts = [("a", FENCED), ("b", "Words.\n```\nx = 1```\nWords."), ("c", "x = 1")]
    assert differences(instrument_rows.fences(texts)) == [0, 1]


def test_a_call_is_compared_with_its_line_if_that_is_one_call():
    behind = "\n<<<api_provider>>>: words (and more)"
    texts = [
        ("a", f"<<<api_call>>>: m.f(x='(')\n### Words{behind}"),
        ("b", f"<<<api_call>>>: m.f(1), <<<code>>>: f(2){behind}"),
        ("c", f"<<<api_call>>>: f(1).g(2){behind}"),
        ("d", "f(1)"),
    ]
    assert differences(instrument_rows.calls(texts)) == [0, 0]


def test_a_body_is_compared_with_the_cut_of_an_answer_that_has_more_than_code():
    two = "```python\nreturn 1\n```\n```python\nreturn 2\n```"
    texts = [("a", FENCED.removeprefix("Words.\n")), ("b", two), ("c", "x = 1"), ("d", "<code>x")]
    assert differences(instrument_rows.bodies(texts)) == [0, 1]


def test_verdicts_are_shares_and_scores_are_distances():
    cases = [("v", "m 1", 0), ("v", "n 1", 1), ("v", "m 2", 0), ("v", "m 3", 0)]
    cases += [("BLEU", "m 1", 0), ("BLEU", "m 2", 0.25)]
    table = pd.DataFrame(cases, columns=["instrument", "id", "difference"]).assign(against="x")
    found = {row["metric"]: row for row in instrument_table.agreement_rows(table)}
    assert found["agreement_percent"]["value"] == 75
    assert found["agreement_percent"]["clusters"] == 3
    assert found["largest_difference"]["value"] == 0.25 and found["differing_cases"]["value"] == 1


def test_the_page_has_the_table_that_the_figures_give():
    if not (instrument_table.FIGURES / "instruments.csv").exists():
        pytest.skip("no figures of published answers")
    page = (paths.ROOT / "docs" / "instruments.md").read_text("utf-8")
    assert instrument_table.markdown() in page
