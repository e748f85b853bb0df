"""``lookuplab claims``: the papers' claims, judged on the figures of a run."""

import json
import math
from pathlib import Path

import click

from lookuplab.errors import UserError

VERDICTS = {"holds": "holds", "fails": "fails", "undecided": "not decided"}  # as typed, as judged


@click.command("claims")
@click.argument("paper_name", metavar="[PAPER]", required=False)
@click.option("--profile", default="mini", show_default=True, help="The profile whose artifacts are judged.")
@click.option(
    "--figures", type=click.Path(path_type=Path), help="Where they lie, if not where the profile writes them."
)
@click.option(
    "--claims", "file", type=click.Path(path_type=Path), help="Another claims file (default: data/paper/claims.yaml)."
)
@click.option("--artifact", "artifacts", multiple=True, help="Only this table or figure; may be given again.")
@click.option("--verdict", "verdicts", multiple=True, type=click.Choice(list(VERDICTS)),
              help="Only claims with this verdict; may be given again.")
@click.option("--details", is_flag=True, help="Every comparison, and where the numbers of the test come from.")
@click.option("--json", "form", flag_value="json", help="Print JSON, one object per claim.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV, one row per comparison.")
def command(paper_name: str | None, profile: str, figures: Path | None, file: Path | None, artifacts: tuple[str, ...],
            verdicts: tuple[str, ...], details: bool, form: str | None) -> None:
    """Does what the papers claim hold in our runs?

    Per claim: the paper's value, ours with its 95% interval, n, and a verdict. It *holds* or *fails* if the whole
    interval is on one side of what is claimed, and is *not decided* if the interval contains it or the artifact is
    missing. Two of our numbers are compared through the interval of their difference, the paired one where the artifact
    states it. The exit code is 0 whatever the verdicts: a claim that fails is a result.

    \b
    Examples:
      lookuplab claims                          every claim, mini profile
      lookuplab claims cloudapibench --profile paper
      lookuplab claims --verdict fails --details
      lookuplab claims --artifact table2_index_lookup
      lookuplab claims --csv > claims.csv
    """
    from lookuplab import claims, paper

    known = paper.papers()
    if paper_name and paper_name not in known:
        raise UserError(f"no paper {paper_name!r}; known: {', '.join(known)}")
    chosen = [claim for claim in claims.load(file or claims.FILE) if paper_name in (None, claim.paper)]
    if unknown := set(artifacts) - (named := {claim.artifact for claim in chosen}):
        raise UserError(f"no claim about {', '.join(sorted(unknown))}; known: {', '.join(sorted(named))}")
    chosen = [claim for claim in chosen if not artifacts or claim.artifact in artifacts]
    wanted = {VERDICTS[name] for name in verdicts or VERDICTS}
    judgements = [one for one in claims.judge_run(chosen, _folder(profile, figures)) if one.verdict in wanted]
    if form == "csv":
        click.echo(claims.table(judgements).to_csv(index=False), nl=False)
    elif form == "json":
        click.echo(json.dumps([_object(judgement) for judgement in judgements], indent=2))
    else:
        click.echo(claims.text(judgements, details))


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
