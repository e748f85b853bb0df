"""Tests the effect of documents on published answers to APIBench."""

import pandas as pd
import pytest

from lookuplab_notebooks.published import documents


def answers(*rows):
    """Return a table of verdicts on the answers of one model ("FT") about one hub. The rows are
    texts "arm question document reference". The official verdicts equal ``reference``.
    """
    names = ["arm", "question", "document", "reference"]
    table = pd.DataFrame([row.split() for row in rows], columns=names)
    right = table.reference.eq("1")
    same = dict.fromkeys(["domain", "official_correct"], right)
    rest = dict.fromkeys(["official_hallucinated", "invented", "no_call"], False)
    table = table.assign(
        reference=right, model="FT", hub="h", cluster=table.question, **same, **rest
    )
    return documents.typed(table)


def values(rows):
    return pd.DataFrame(rows).set_index(["condition", "metric"]).value


def test_answers_are_paired_by_question_and_the_break_even_is_where_gains_make_up_for_losses():
    table = answers(
        *(f"0_shot {number} none {int(number < 4)}" for number in range(8)),
        *(f"oracle {number} right {int(number != 7)}" for number in range(8)),
        *(f"bm25 {number} wrong_other_domain {int(number == 0)}" for number in range(8)),
    )
    rows = values(documents.change_rows(table))
    # 7 of 8 answers are right with a document, and 4 of 8 without
    assert rows["right/all - none/all", "domain_change_points"] == 37.5
    assert rows["wrong/all - none/all", "domain_change_points"] == -37.5
    assert [rows["wrong/all - none/all", f"domain_{name}"] for name in ("lost", "gained")] == [3, 0]
    lost = values(documents.loss_rows(table))
    assert lost["wrong_other_domain/all", "domain_lost_percent"] == 75
    even = values(documents.break_even_rows(table))
    assert even["all", "domain_break_even_percent"] == pytest.approx(50)


def test_the_committed_verdicts_count_what_the_official_scripts_count():
    apart = (documents.counts(documents.load()) - documents.official_counts()).abs()
    assert apart.to_numpy().max() == 0
