#!/usr/bin/env bash
# evalica 0.4.2: if one model wins all or none of its comparisons, all models get the same Bradley-Terry score, 0.000001, without a warning.
#
# Expected: an undefeated model has the highest score, or the function says that the scores do not exist (the likelihood then has no maximum).
# choix 0.4.1 raises an error for such data, and ranks the models with a small penalty.
# Seen: A beats B and C 10 times out of 10, and B beats C in 6 of 10 comparisons. All three have the score 1e-06, so they are tied, although B's and C's
# scores could be told apart. If C loses everything, the scores are the same. Newman's score also ties all models in the first case, and in
# the simplest one: A beats B in 7 of 10 comparisons, and both have 1.0, where Bradley-Terry gives 1.53 and 0.655. Both solvers agree. There is no warning.
# Why it matters: models are ranked by the verdicts of a judge on pairs of answers. In a small arena, one model often wins or loses everything,
# and then the table says that all models are equal.
# What to do: look whether the scores are all 1e-06 or 1.0, and add a penalty, or a drawn comparison of each pair.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet evalica==0.4.2 choix==0.4.1 2>/dev/null
"$place/venv/bin/python" -W error - <<'PY'
from importlib.metadata import version

import choix
import evalica
from evalica import Winner

UNDEFEATED = [("A", "B", 10, 0), ("A", "C", 10, 0), ("B", "C", 6, 4)]
WINLESS = [("A", "B", 6, 4), ("A", "C", 10, 0), ("B", "C", 10, 0)]
MIXED = [("A", "B", 7, 3), ("A", "C", 8, 2), ("B", "C", 6, 4)]


def scores(method, games):
    """Return {model: score}. A game is (first model, second model, wins of the first, wins of the second)."""
    pairs = [(x, y, winner) for x, y, won, lost in games for winner in [Winner.X] * won + [Winner.Y] * lost]
    by_solver = [method(*zip(*pairs), solver=solver).scores.sort_index() for solver in ("naive", "pyo3")]
    assert by_solver[0].sub(by_solver[1]).abs().max() < 1e-6, "the solvers differ"
    return {model: float(f"{score:.3g}") for model, score in by_solver[0].items()}


print("evalica", version("evalica"))
for name, games in {"undefeated": UNDEFEATED, "winless": WINLESS, "mixed": MIXED}.items():
    found = scores(evalica.bradley_terry, games)
    print(f"Bradley-Terry, {name}: {found}")
    assert (set(found.values()) == {1e-06}) == (games is not MIXED), "the behaviour changed"
found = [scores(evalica.newman, games) for games in (UNDEFEATED, MIXED[:1])]
print("Newman, undefeated:", found[0], "two models, 7 of 10:", found[1])
assert set(found[0].values()) == {1e-06} and set(found[1].values()) == {1.0}, "the behaviour changed"
wins = [("ABC".index(a), "ABC".index(b)) for x, y, won, lost in UNDEFEATED for a, b in [(x, y)] * won + [(y, x)] * lost]
try:
    choix.ilsr_pairwise(3, wins)
except ValueError as error:
    print("choix:", error)
else:
    raise AssertionError("the behaviour changed")
print("choix with a penalty:", choix.ilsr_pairwise(3, wins, alpha=0.01).round(2))
PY
