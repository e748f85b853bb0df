"""GPU memory and hours of a profile, artifact by artifact: memory by the dry run's arithmetic, hours as recorded."""

from dataclasses import dataclass

from lookuplab import paths
from lookuplab.models.load import CHAT, is_remote, split_revision
from lookuplab.report.last_run import Entry, written_by
from lookuplab.runner import notebooks, profiles, resources
from lookuplab.runner.dry_run import ROWS, known_facts, prompt_tokens
from lookuplab.runner.plan import Job, plan


@dataclass(frozen=True)
class Need:
    """One notebook. Memory in GB (10^9 bytes) of its largest model: weights, with one prompt, with a batch of them.

    None where there is no model of known size. ``unknown`` are models whose size no file here tells, ``hours`` the
    recorded wall time of the last run, None where there was none.
    """

    notebook: str
    models: int
    largest: str
    weights: float | None
    one: float | None
    batch: float | None
    unknown: tuple[str, ...]
    hours: float | None


def needs(profile: str) -> list[Need]:
    """What each notebook of a paper needs under a profile; local files only, nothing is loaded or fetched."""
    chosen = profiles.load(profile)
    return [_need(plan(notebook, chosen, dry=True),
                  Entry(notebook.paper, notebook.name, written_by(chosen) / notebook.paper, notebook))
            for notebook in notebooks.all_notebooks() if (paths.PAPER / notebook.paper).is_dir()]


def _need(job: Job, entry: Entry) -> Need:
    models = list(dict.fromkeys(model for _, model in resources.models_of(job.values) if not is_remote(model)))
    tokens = prompt_tokens(job.values), int(job.values.get("max_new_tokens", 0))
    facts = {model: known_facts(model.removesuffix(CHAT))[0] for model in models}
    sized = {model: (fact.weights, fact.gigabytes(1, *tokens), fact.gigabytes(ROWS, *tokens))
             for model, fact in facts.items() if fact}
    largest = max(sized, key=lambda model: sized[model][2], default="")
    seconds = entry.provenance.get("wall_seconds")
    return Need(job.notebook.id, len(models), split_revision(largest)[0], *(sized[largest] if sized else (None,) * 3),
                unknown=tuple(split_revision(model)[0] for model, fact in facts.items() if fact is None),
                hours=None if seconds is None else seconds / 3600)
