"""``lookuplab status``: what the store holds, which artifacts are there, and what the others would cost."""

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lookuplab.commands.store import place

if TYPE_CHECKING:
    from lookuplab.models.store_report import StoreReport
    from lookuplab.runner.state import State


@click.command(short_help="What is stored, what is missing, what it would cost.", epilog="""\b
Examples:
  lookuplab status
  lookuplab status table1_base_models
  lookuplab status --profile paper""")
@click.argument("notebook", required=False)
@click.option("--profile", default="mini", show_default=True, help="smoke, mini, paper, or the path of a YAML file.")
def command(notebook: str | None, profile: str) -> None:
    """Say what the completion store holds, and how the profile's artifacts (those of NOTEBOOK) stand.

    An artifact is out of date where its parameters, data, models, packages, notebook or the parts of the library that
    the notebook imports are others than when it was made. What a missing or outdated one would cost is known where the
    notebook ran before with this store: the answers that it asked for and that are not there, at the speed that was
    measured here for each model. No model is loaded, nothing is run.
    """
    from lookuplab.models.store_report import reading
    from lookuplab.runner import notebooks, profiles
    from lookuplab.runner.state import states

    chosen = profiles.load(profile)
    wanted = [notebooks.find(notebook)] if notebook else notebooks.all_notebooks()
    store = place()
    with reading(store) as report:
        click.echo(store_text(store, report))
        click.echo()
        found = states(chosen, wanted)
        click.echo(f"profile {chosen.name}: {_counted(found)}")
        rows = []
        for _, group in groupby(found, key=lambda one: one.job.notebook.id):
            group = list(group)
            rows += [(one.artifact, one.state, changed(one, in_full=notebook is not None)) for one in group]
            if any(one.state != "present" for one in group):
                rows.append(("", "", f"-> {cost(group[0], report)}"))
        click.echo(aligned(rows))


def store_text(store: Path, report: "StoreReport") -> str:
    """Sizes of the store and of those beside it, and a table of its models."""
    from lookuplab.models.store_report import day

    answers, prompts = report.totals()
    beside = (store.with_name(f"{name}.sqlite") for name in ("judgements", "suggestions", "verdicts"))
    files = [(file, sum(part.stat().st_size for part in file.parent.glob(f"{file.name}*")) / 1e6)
             for file in (store, *beside) if file.is_file()]
    sizes = ", ".join(f"{file.stem} {size:,.1f} MB" for file, size in files) or "nothing on disk yet"
    rows = [("model", "prompts", "answers", "MB", "oldest", "newest", "answers/s")]
    rows += [(one.model, f"{one.prompts:,}", f"{one.answers:,}", f"{one.size / 1e6:,.1f}", day(one.oldest),
              day(one.newest), f"{one.speed:,.1f}" if one.speed else "unknown") for one in report.held()]
    head = f"store {store}: {answers:,} answers to {prompts:,} prompts ({sizes})"
    return "\n".join([head, aligned(rows)] if answers else [head])


def cost(state: "State", report: "StoreReport") -> str:
    """What running the notebook would generate, in words."""
    from lookuplab.runner import resources

    job = state.job
    if not resources.models_of(job.values):
        return "asks no model"
    pending = report.pending(f"{job.profile}/{job.notebook.id}")
    if not pending:
        return "cost unknown: it never ran with this store"
    missing = [one for one in pending if one.missing]
    if not missing:
        return f"generates nothing: all {sum(one.asked for one in pending):,} answers are stored"
    parts = [f"{one.missing:,} of {one.model} ({duration(one.seconds)})" for one in missing]
    known = [one.seconds for one in missing]
    total = duration(None if None in known else sum(known))
    return f"generates {sum(one.missing for one in missing):,} answers: {', '.join(parts)}; in all {total}"


def duration(seconds: float | None) -> str:
    """About how long, in the largest unit that fits."""
    if seconds is None:
        return "time unknown"
    unit, size = next(((unit, size) for unit, size in (("h", 3600), ("min", 60)) if seconds >= size), ("s", 1))
    return f"about {seconds / size:,.1f} {unit}" if size > 1 else f"about {seconds:,.0f} s"


def changed(state: "State", in_full: bool) -> str:
    """What changed since the artifact was made: by name, or how many of which kind."""
    if in_full:
        return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in state.reasons.items())
    return ", ".join(kind if len(names) == 1 else f"{kind} ({len(names)})" for kind, names in state.reasons.items())


def aligned(rows: list[tuple[str, ...]]) -> str:
    """Columns side by side."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                     for row in rows)


def _counted(found: list["State"]) -> str:
    states = [one.state for one in found]
    return f"{len(states)} artifact{'s' * (len(states) != 1)}, " + ", ".join(
        f"{states.count(name)} {name}" for name in ("present", "out of date", "missing"))
