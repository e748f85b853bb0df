"""Makes the rows of the notebook documented_share, which show how much documentation a model must
have seen before documentation helps it (data/documented/DESIGN.md).

The condition ``share_<share>/<shown>`` is for models that were trained further on texts in which
this share of the calls has a document above the call. ``shown`` says which document the prompts of
the test put above the task. Intervals combine tasks and seeds.
"""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

from lookuplab import paths
from lookuplab.cloudapi.bench import DESIGN
from lookuplab.cloudapi.policies import CLASS_ORDER, INTERVALS, Rows
from lookuplab.cloudapi.tasks import ApiTask
from lookuplab.scoring.rates import Array, of_number, over_seeds, row

DESIGNS = ("name", "description", "specification", DESIGN)
SHOWN = ("base", *DESIGNS, "wrong", "copied")
CHANGES = [(new, old) for at, new in enumerate(DESIGNS) for old in DESIGNS[:at]]


def answers(file: Path | str) -> dict[str, dict[str, pd.DataFrame]]:
    """Return {model: {share: frame}} with the committed verdicts, 0 or 1. A frame has one row per
    task and one column per pair (shown, seed). The share "" stands for the model before the further
    training.

    A seed is left out if the model was not trained with this seed for every share.
    """
    table = pd.read_csv(paths.located(file), dtype={"share": str, "seed": str})
    # The model before the training has no seed. The seed is called "before", because pandas treats
    # an empty column name as missing.
    table = table.fillna({"share": "", "seed": "before"})
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for size, rows in table.groupby("size", sort=False):
        trained = rows[rows.share != ""]
        shares = trained.groupby("seed").share.nunique()
        whole = shares.index[shares == trained.share.nunique()]
        parts = rows[rows.seed.isin([*whole, "before"])].groupby("share")
        order = sorted(parts.groups, key=lambda share: Fraction(share or -1))
        found[f"mini-{size}"] = {
            share: parts.get_group(share).pivot(index="id", columns="seed", values=list(SHOWN))
            for share in order
        }
    return found


def share_rows(
    model: str,
    frames: Mapping[str, pd.DataFrame],
    tasks: Mapping[str, ApiTask],
    tokens: Mapping[str, float],
) -> Rows:
    """Return the rows of a model. ``frames`` are the model's ``answers``, ``tasks`` maps ids to
    tasks, and ``tokens`` maps a design of documentation to the mean number of tokens that it adds
    to a prompt.

    Two metrics are computed over all tasks and for each frequency class: ``valid_percent``, and
    ``valid_change_points``, the change from the same model without documentation. The condition of
    a class has the suffix ``/<class>``.

    The other metrics are over all tasks only:

    - the paired change of validity between two designs.
    - ``points_per_100_tokens``, the gain in validity from a design, per 100 tokens that the design
      adds. Under the condition ``specification beyond name``, it is the difference between two such
      gains: the gain from the lines that only the specification has, minus the gain from the name.
    - ``copied_percent``, how often the API of the wrong document is called.
    - ``valid_change_points`` under the condition ``.../knowing``: how much the further training
      changed the validity without documentation.
    - if there are several seeds, the paired changes from the models trained with documents for no
      call (share 0) to the models trained with a document for every call (share 1). There are three
      changes: of the validity without documentation, of the gain from the specification, and of the
      gain from a wrong document.
    """
    rows: Rows = []
    before = frames[""]["base"].to_numpy()
    asked = [tasks[id] for id in frames[""].index]
    clusters, frequency = np.array([(task.target, task.frequency) for task in asked]).T
    parts = {"": np.full(len(before), True)} | {f"/{one}": frequency == one for one in CLASS_ORDER}

    def add(condition: str, metric: str, values: Array, by_class: bool = False) -> None:
        if np.isnan(values).any():  # models of this size were not tested with this design
            return
        kind = INTERVALS.get(metric.rpartition("_")[2], of_number)
        for label, mask in parts.items() if by_class else [("", parts[""])]:
            number = over_seeds(values[mask], clusters[mask], kind)
            number = number if kind is of_number else number.percent()
            sides = " - ".join(f"{side}{label}" for side in condition.split(" - "))
            rows.append(row(model, sides, metric, number))

    for share, frame in frames.items():
        head = f"share_{float(Fraction(share)):g}" if share else "before"
        valid = {shown: frame[shown].to_numpy() for shown in SHOWN}
        gain = {shown: valid[shown] - valid["base"] for shown in (*DESIGNS, "wrong")}
        for shown in SHOWN[:-1]:
            add(f"{head}/{shown}", "valid_percent", valid[shown], by_class=True)
        for shown, change in gain.items():
            add(f"{head}/{shown}", "valid_change_points", change, by_class=True)
        for new, old in CHANGES:
            add(f"{head}/{new} - {head}/{old}", "valid_change_points", valid[new] - valid[old])
        add(f"{head}/wrong", "copied_percent", valid["copied"])
        if share:
            add(f"{head}/knowing", "valid_change_points", valid["base"] - before)
        prices = {design: gain[design] / tokens[design] for design in DESIGNS}
        lines = valid["specification"] - valid["name"]
        lines = lines / (tokens["specification"] - tokens["name"])
        prices["specification beyond name"] = lines - prices["name"]
        for name, price in prices.items():
            # 1e4: from a share per token to points (percent) per 100 tokens
            add(f"{head}/{name}", "points_per_100_tokens", 1e4 * price)
    if {"0", "1"} <= frames.keys() and len(frames["1"]["base"].columns) > 1:
        more = {shown: (frames["1"][shown] - frames["0"][shown]).to_numpy() for shown in SHOWN}
        add("share_1/base - share_0/base", "valid_change_points", more["base"])
        for shown in ("specification", "wrong"):
            change = more[shown] - more["base"]
            add(f"share_1/{shown} - share_0/{shown}", "gain_change_points", change)
    return rows


def worth_from(saved: pd.DataFrame, model: str) -> str:
    """Return in words the share from which the specification is worth its tokens, for example "if
    at least 1/4 had it". The specification is the API's name and further lines. It is worth its
    tokens if, per token, the further lines raise validity significantly more than the name does.

    Return "for no share" if there is no such share, and "" if the model was not tested with names.
    """
    price = saved[(saved.model == model) & saved.condition.str.match("share_.*beyond name")]
    above = price[price.metric == "points_per_100_tokens"].ci_low > 0
    shares = price.condition.str.extract(r"share_([\d.]+)/")[0].astype(float)
    falling = shares.sort_values(ascending=False)
    worth = [*falling[above.loc[falling.index].cummin()]]
    none = "for no share" if len(price) else ""
    return f"if at least {Fraction(worth[-1])} had it" if worth else none
