"""What a run would do and need, without starting it: the notebooks in order, what each misses, every model's memory."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lookuplab import data_sources
from lookuplab.models.facts import ModelFacts, facts_of
from lookuplab.models.load import CHAT, OPENAI, is_remote, mini_models, split_revision, table_name
from lookuplab.runner import resources
from lookuplab.runner.plan import Job
from lookuplab.runner.profiles import Profile

ROWS = 64  # of a batch on a GPU (models.local); it is halved until it fits
TASK, DOCUMENT, FULL = 400, 1_900, 5_300  # characters: the longest task, one API in a short design, one in full
CHARACTERS = 2.5  # per token, on the safe side: code takes three to four in these models' vocabularies
_DOCUMENTS = ("k", "ks", "retrievals", "documents")  # parameters that say how many APIs a prompt shows
_SHOWS = ("design", "precision")  # parameters of notebooks that show documentation begin so
_HEAD = ("model", "revision", "architecture", "parameters", "dtype", "weights", "one row", f"{ROWS} rows", "cached",
         "notebooks")
_LEGEND = f"""\
GB (10^9 bytes) of GPU memory: `weights` alone; all that `one row` needs; all for a batch of {ROWS}, halved until it
fits. The latter two are weights + keys and values of all tokens + one block's activations while it reads the prompts,
and a tenth on top. Prompts: {TASK} characters of code and, where a notebook shows documentation, {FULL:,} for each API
in full or {DOCUMENT:,} in another design, at {CHARACTERS} characters a token; then max_new_tokens. dtype is that of the
files, as a GPU loads them (a CPU computes in float32). One model runs at a time, spread over all GPUs there are."""


def report(jobs: Sequence[Job], profile: Profile) -> str:
    """The text of a dry run. Reads local files only: no network, no kernel, no model's weights."""
    ordered = sorted(jobs, key=lambda job: {"first": 0, "alone": 2}.get(job.notebook.order, 1))
    lines = [f"profile {profile.name}: {profile.description}".rstrip(": "), ""]
    missing: dict[str, list[int]] = {problem: [] for problem in resources.missing_needs(profile)}
    for number, job in enumerate(ordered, 1):
        lines.append(f"{number:2} {job.notebook.id}")
        lines += [f"     {name} = {_short(value)}" for name, value in job.parameters.items()
                  if name != "profile" and value != job.notebook.parameters[name]]
        for problem in job.missing:
            missing.setdefault(problem, []).append(number)
    for problem, numbers in missing.items():
        lines += ["", f"missing ({_numbers(numbers) or 'all'}): {problem}"]
    rows = [_row(model, numbers, tokens) for model, (numbers, tokens) in _uses(ordered).items()]
    return "\n".join([*lines, "", *_aligned([_HEAD, *rows]), "", _LEGEND] if rows else lines)


def _uses(jobs: Sequence[Job]) -> dict[str, tuple[list[int], tuple[int, int]]]:
    """model -> the numbers of the notebooks that use it, and their most tokens of prompt and of answer."""
    uses: dict[str, tuple[list[int], tuple[int, int]]] = {}
    for number, job in enumerate(jobs, 1):
        tokens = prompt_tokens(job.values), int(job.values.get("max_new_tokens", 0))
        for model in dict.fromkeys(model for _, model in resources.models_of(job.values)):
            numbers, most = uses.get(model, ([], (0, 0)))
            uses[model] = [*numbers, number], (max(most[0], tokens[0]), max(most[1], tokens[1]))
    return uses


def prompt_tokens(values: Mapping[str, Any]) -> int:
    """A bound on a notebook's longest prompt, from what its parameters say about documentation."""
    said = [value for name, value in values.items() if name.startswith(_SHOWS)]
    counts = [item for name in _DOCUMENTS for item in _items(values.get(name, ())) if isinstance(item, int)]
    if not said and not counts:
        return round(TASK / CHARACTERS)
    each = FULL if any("full" in _items(value) for value in said) else DOCUMENT
    return round((TASK + each * max(counts, default=1)) / CHARACTERS)


def _row(model: str, numbers: Sequence[int], tokens: tuple[int, int]) -> tuple[str, ...]:
    used = _numbers(numbers)
    if is_remote(model):
        key = "key is set" if os.environ.get(resources.KEY, "").strip() else f"needs {resources.KEY}"
        return (model, "-", "endpoint", "-", "-", "0", "0", "0", key if model.startswith(OPENAI) else "-", used)
    place = model.removesuffix(CHAT)
    name, revision = split_revision(place)
    facts, cached = known_facts(place)
    called = table_name(model) + CHAT * model.endswith(CHAT)
    if resources.is_on_hub(model):
        revision = (revision or data_sources.UNPINNED)[:12]
        revision += " (not pinned)" * (revision == data_sources.UNPINNED)
    if facts is None:
        known = "unknown: " + ("incomplete" if cached else "not cached")
        return called, revision or "-", known, *5 * ("-",), "no", used
    needs = facts.weights, facts.gigabytes(1, *tokens), facts.gigabytes(ROWS, *tokens)
    sizes = [f"{size:,.1f}" if size >= 0.05 else f"{size:.2g}" for size in needs]
    return (called, revision or "-", facts.architecture, _count(facts.parameters), facts.dtype, *sizes,
            "yes" if cached else "no", used)


def known_facts(place: str) -> tuple[ModelFacts | None, bool]:
    """What is known of a model, and whether its weights are on this machine."""
    if not resources.is_on_hub(place):
        folder = mini_models().get(place) or resources.folder_of(place)
        return facts_of(folder), folder.is_dir()
    snapshot = resources.snapshot_of(place)
    cached = snapshot is not None and any(file.suffix in (".safetensors", ".bin") for file in snapshot.iterdir())
    source = data_sources.of_model(place)
    return (source.facts if source else None) or (facts_of(snapshot) if snapshot else None), cached


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _short(value: Any) -> str:
    """A value in one line; the models' revisions stand in the table, and a long value says how much there is."""
    if isinstance(value, (list, tuple)):
        value = [split_revision(item)[0] if isinstance(item, str) else item for item in value]
    text = str(value)
    return text if len(text) <= 110 else f"{text[:100]}... ({len(value)} in all)"


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _count(parameters: int) -> str:
    return f"{parameters / 1e9:.2f} B" if parameters >= 1e9 else f"{parameters / 1e6:.1f} M"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
