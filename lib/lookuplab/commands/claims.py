"""``lookuplab claims``: the papers' claims, judged on the figures of a run."""

import json
import math
import textwrap
from collections import Counter
from pathlib import Path

import click

from lookuplab.errors import UserError

WIDTH = 110


@click.command("claims")
@click.argument("paper_name", metavar="[PAPER]", required=False)
@click.option("--profile", default="mini", show_default=True, help="The profile whose artifacts are judged.")
@click.option(
    "--figures", type=click.Path(path_type=Path), help="Where they lie, if not where the profile writes them."
)
@click.option(
    "--claims", "file", type=click.Path(path_type=Path), help="Another claims file (default: data/paper/claims.yaml)."
)
@click.option("--json", "form", flag_value="json", help="Print JSON, one object per claim.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV, one row per comparison.")
def command(paper_name: str | None, profile: str, figures: Path | None, file: Path | None, form: str | None) -> None:
    """Does what the papers claim hold in our runs?

    Per claim: the paper's value, ours with its 95% interval, n, and a verdict. It *holds* or *fails* if the whole
    interval is on one side of what is claimed, and is *not decided* if the interval contains it or the artifact is
    missing. Two of our numbers are compared through the interval of their difference. The exit code is 0 whatever the
    verdicts: a claim that fails is a result.

    \b
    Examples:
      lookuplab claims                          every claim, mini profile
      lookuplab claims cloudapibench --profile paper
      lookuplab claims --csv > claims.csv
    """
    from lookuplab import claims, paper

    known = paper.papers()
    if paper_name and paper_name not in known:
        raise UserError(f"no paper {paper_name!r}; known: {', '.join(known)}")
    chosen = [claim for claim in claims.load(file or claims.FILE) if paper_name in (None, claim.paper)]
    judgements = claims.judge_run(chosen, _folder(profile, figures))
    if form == "csv":
        click.echo(claims.table(judgements).to_csv(index=False), nl=False)
    elif form == "json":
        click.echo(json.dumps([_object(judgement) for judgement in judgements], indent=2))
    else:
        click.echo("\n\n".join(_text(judgement) for judgement in judgements))
        click.echo("\n" + _summary(judgements))


def _folder(profile: str, figures: Path | None) -> Path:
    """The profile's artifacts: committed ones under ``figures``, those of other profiles under ``runs/figures``."""
    from lookuplab import paths
    from lookuplab.runner import profiles

    chosen = profiles.load(profile)
    if figures and not (figures / chosen.name).is_dir():
        raise UserError(
            f"no folder {figures / chosen.name}; --figures names the folder that holds one folder per profile"
        )
    return (figures or (paths.FIGURES if chosen.committed else paths.RUNS / "figures")) / chosen.name


def _text(judgement) -> str:
    claim = judgement.claim
    head = f"{claim.id} ({claim.place})"
    lines = [f"{head:<{WIDTH - 12}}{judgement.verdict.upper():>12}"]
    lines += textwrap.wrap(claim.statement, WIDTH, initial_indent="  ", subsequent_indent="  ")
    lines.append(f"  {claim.test['metric']}; {claim.models}; paper: {_range(judgement.reported)}")
    if judgement.note:
        return "\n".join([*lines, f"  {judgement.note}"])
    rows = [_row(comparison) for comparison in judgement.comparisons]
    header = ("model", "is", "paper", "ours [95% interval]", "n", "")
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return "\n".join(lines + ["    " + _aligned(row, widths) for row in [header, *rows]])


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [
        cell.rjust(width) if i in (2, 3, 4) else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _row(c) -> tuple[str, ...]:
    interval = "" if c.low == c.high or math.isnan(c.low) else f" [{_number(c.low)}, {_number(c.high)}]"
    return c.model or "-", c.quantity, _number(c.paper_value), _number(c.value) + interval, c.n, c.verdict


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}".removesuffix(".00")


def _range(reported) -> str:
    """The paper's own numbers for the same comparisons, smallest to largest."""
    if not reported:
        return "no printed numbers"
    found = [comparison.value for comparison in reported]
    if min(found) == max(found):
        return _number(found[0])
    return f"{_number(min(found))} to {_number(max(found))} in {len(found)} comparisons"


def _object(judgement) -> dict:
    claim = judgement.claim

    def plain(comparison) -> dict:
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in vars(comparison).items()
        }

    return vars(claim) | {
        "verdict": judgement.verdict,
        "note": judgement.note,
        "comparisons": [plain(comparison) for comparison in judgement.comparisons],
        "reported": [plain(comparison) for comparison in judgement.reported],
    }


def _summary(judgements) -> str:
    count = Counter(judgement.verdict for judgement in judgements)
    return f"{len(judgements)} claims: {count['holds']} hold, {count['fails']} fail, {count['not decided']} not decided"
