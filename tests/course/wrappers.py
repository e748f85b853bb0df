"""Answers that call what the kit, or a package that it uses, has already: right, and not the
student's own.
"""

WRAPPERS = {
    "lesson0_tokens": {},  # the kit has nothing of the kind
    "lesson1_hallucination": {
        "shares": [
            """
from lookuplab.cloudapi.policies import class_rows

def valid_shares(table):
    rows = class_rows(table.assign(model="", cluster=range(len(table))), "", {"valid": table.valid})
    return {row["condition"]: row["value"] for row in rows if row["condition"] in set(table.frequency)}""",
        ],
        "auroc": [
            """
def auroc(valid, confidence):
    from sklearn.metrics import roc_auc_score as hidden
    return hidden(valid, confidence)""",
        ],
    },
    "lesson2_retrieval": {
        "expected": [
            """
from lookuplab.cloudapi import policies as kit

def expected_share(hit_valid, miss_valid, precision):
    return kit.expected(hit_valid, miss_valid, precision).mean()""",
            """
from lookuplab.cloudapi.policies import expected as _kit

def expected_share(hit_valid, miss_valid, precision, answer=_kit):
    try:
        return answer(hit_valid, miss_valid, precision).mean()
    except AssertionError:
        return answer(hit_valid, miss_valid, precision).mean()""",
        ],
        "policy": [
            """
from lookuplab.cloudapi.policies import triggered

def retrieves(first, threshold):
    return triggered(first, "dag_plus_plus", threshold)""",
        ],
        "reciprocal": [
            """
from lookuplab.retrieval import metrics

def reciprocal_rank(ranking, wanted, k=20):
    return metrics.reciprocal_rank({"q": ranking}, {"q": set(wanted)}, k)[0]""",
        ],
    },
    "lesson3_decoding": {
        "deserves": [
            """
from types import SimpleNamespace
from lookuplab.toolgen.marking import candidates

def deserves_mark(name, previous, suggestions):
    before, token = (SimpleNamespace(text=text, line=1) for text in (previous or " ", name))
    return name in suggestions and token in candidates(SimpleNamespace(tokens=[before, token], body_line=1))""",
        ],
        "overruled": [
            """
from explorer import Walk

def overruled(walked):
    return Walk.overruled(walked)""",
        ],
    },
    "lesson4_claims": {
        "wilson": [
            """
from lookuplab.scoring import rates

wilson = rates.wilson""",
            """
from statsmodels.stats.proportion import proportion_confint

def wilson(k, n):
    return proportion_confint(k, n, method="wilson")""",
            """
def wilson(k, n):
    return tuple(scipy.stats.binomtest(k, n).proportion_ci(method="wilson"))""",
        ],
        "needed": [
            """
from lookuplab.scoring import rates

def needed(share, width):
    return next(n for n in range(1, 10_000) if rates.wilson(share * n, n)[1] - rates.wilson(share * n, n)[0] <= width)""",
        ],
        "size": [
            """
def size(low, high, printed):
    return claims.Comparison("", None, None, 0, 0, low, low, high, paper_value=printed).size""",
        ],
    },
    "lesson5_comparisons": {
        "changed": [
            """
from lookuplab.scoring import rates

def changed(before, after):
    return rates.mcnemar(before, after)[:2]""",
        ],
        "mcnemar": [
            """
from lookuplab.scoring import rates

def mcnemar(lost, gained):
    return rates.mcnemar([True] * lost + [False] * gained, [False] * lost + [True] * gained).p""",
        ],
        "paired": [
            """
from lookuplab.scoring import rates

def paired_interval(before, after, clusters):
    found = rates.paired_difference(before, after, clusters)
    return found.low, found.high""",
        ],
        "holm": [
            """
from lookuplab.scoring import rates

def holm(p_values):
    return rates.holm(p_values)""",
            """
from statsmodels.stats.multitest import multipletests

def holm(p_values):
    return multipletests(p_values, method="holm")[1]""",
        ],
    },
}
