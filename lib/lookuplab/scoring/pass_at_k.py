"""pass@k (Chen et al. 2021, Section 2.1): the chance that at least one of k samples passes.

The plain share of problems with a pass among their first k samples is unbiased too, and noisier; 1 - (1 - c/n)^k is
biased. The closed form uses all n samples: 1 - C(n-c, k) / C(n, k), the share of the sets of k samples that hold a pass.
"""

from collections.abc import Mapping, Sequence
from math import comb

from lookuplab.errors import UserError
from lookuplab.scoring.rates import Rate, rate


def pass_at_k(n: int, c: int, k: int) -> float:
    """pass@k of one problem of whose ``n`` samples ``c`` passed; exact, since Python's integers are.

    pass_at_k(n, c, 1) is c / n, the pass rate. Raises UserError for k > n: fewer samples say nothing about more.
    """
    if not 0 <= c <= n:
        raise ValueError(f"{c} of {n} samples cannot have passed")
    if k < 1 or k > n:
        raise UserError(
            f"pass@{k} needs 1 <= k <= n, and there are n = {n} samples: draw more, or ask for a smaller k"
        )
    return 1 - comb(n - c, k) / comb(n, k)


def passes(verdicts: Mapping[str, Sequence[bool]], clusters: Mapping[str, str], k: int) -> Rate:
    """Mean pass@k over problems; ``n`` counts the problems.

    verdicts: problem id -> whether each of its samples passed (their number may differ between problems).
    clusters: problem id -> the label of what is resampled together for the interval, as the origin problem.
    """
    ids = sorted(verdicts)
    values = [pass_at_k(len(verdicts[one]), sum(verdicts[one]), k) for one in ids]
    return rate(values, [clusters[one] for one in ids])
