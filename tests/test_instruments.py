"""How instruments are compared with what knows better."""

import pandas as pd

from lookuplab_notebooks.published import instrument_table


def test_verdicts_are_shares_and_scores_are_distances():
    cases = [("v", "m 1", 0), ("v", "n 1", 1), ("v", "m 2", 0), ("v", "m 3", 0)]
    cases += [("BLEU", "m 1", 0), ("BLEU", "m 2", 0.25)]
    table = pd.DataFrame(cases, columns=["instrument", "id", "difference"]).assign(against="x")
    found = {row["metric"]: row for row in instrument_table.agreement_rows(table)}
    assert found["agreement_percent"]["value"] == 75
    assert found["agreement_percent"]["clusters"] == 3
    assert found["largest_difference"]["value"] == 0.25 and found["differing_cases"]["value"] == 1
