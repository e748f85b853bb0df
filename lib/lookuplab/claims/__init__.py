"""The papers' claims, judged by a program on the artifacts of any run (``data/paper/claims.yaml``)."""

from lookuplab.claims.file import FILE, Claim, load
from lookuplab.claims.judging import FAILS, HOLDS, UNDECIDED, Comparison, Judgement, judge, judge_run, table
from lookuplab.claims.questions import by_family

__all__ = ["FAILS", "FILE", "HOLDS", "UNDECIDED", "Claim", "Comparison", "Judgement", "by_family", "judge", "judge_run",
           "load", "table"]
