"""Which artifacts of a profile are there, which are out of date, and why: from the JSON beside each, nothing is run."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lookuplab import paths, provenance
from lookuplab.errors import UserError
from lookuplab.models.content import content_files, content_hash
from lookuplab.models.load import folder_of, is_remote
from lookuplab.runner import resources, sources
from lookuplab.runner.notebooks import Notebook
from lookuplab.runner.plan import Job, plan
from lookuplab.runner.profiles import Profile

PRESENT, OUTDATED, MISSING = "present", "out of date", "missing"
UNCHANGED = "unchanged"
LARGE = 256 * 2**20  # bytes: of more than that, the time of the last change stands for the content


@dataclass(frozen=True)
class State:
    """One artifact ("paper/name"), the job that makes it, PRESENT, OUTDATED or MISSING, and what changed since.

    ``reasons`` maps a kind (parameters, data, models, packages, notebook, library) to the names of what changed.
    """

    artifact: str
    job: Job
    state: str
    reasons: Mapping[str, Sequence[str]] = field(default_factory=dict)


def states(profile: Profile, notebooks: Sequence[Notebook]) -> list[State]:
    """Every artifact of the notebooks under the profile."""
    for known in (_data_hash, _content_hash, _changed_since):  # of an earlier call: files may have changed
        known.cache_clear()
    found = []
    for notebook in notebooks:
        job = plan(notebook, profile, dry=True)
        for artifact in sources.artifacts(notebook):
            file = job.figures / profile.name / f"{artifact}.json"
            found.append(_state(artifact, job, file))
    return found


def _state(artifact: str, job: Job, file: Path) -> State:
    if not file.is_file() or not file.with_suffix(".csv").is_file():
        return State(artifact, job, MISSING)
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return State(artifact, job, OUTDATED, {"provenance": [f"{file.name} cannot be read"]})
    reasons = {kind: names for kind, names in _reasons(record, job, file.stat().st_mtime) if names}
    return State(artifact, job, OUTDATED if reasons else PRESENT, reasons)


def _reasons(record: dict, job: Job, since: float) -> Iterator[tuple[str, list[str]]]:
    values = json.loads(json.dumps(provenance.relative(job.values)))
    recorded = record.get("parameters") or {}
    yield "parameters", [name for name, value in values.items() if name in recorded and recorded[name] != value]
    yield "data", [name for name, digest in (record.get("data") or {}).items() if not _same(name, digest, since)]
    yield "models", list(_changed_models(record, job, since))
    packages = _packages()
    yield "packages", [f"{name} (then {old})" for name, old in (record.get("packages") or {}).items()
                       if packages.get(name, old) != old]
    yield from _changed_code(record.get("git") or {}, job)


@cache
def _packages() -> dict[str, str]:
    """Without the library's own version: its code is compared."""
    return {name: version for name, version in provenance.package_versions().items() if name != "lookuplab"}


def _same(name: str, digest: str, since: float) -> bool:
    place = paths.located(name)
    if not place.exists():
        return False
    files = [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]
    if sum(file.stat().st_size for file in files) > LARGE:
        return all(file.stat().st_mtime <= since for file in files)
    return _data_hash(place) == digest


@cache
def _data_hash(place: Path) -> str:
    return provenance.content_hash(place.resolve())


def _changed_models(record: dict, job: Job, since: float) -> Iterator[str]:
    """Models in folders whose content is none of those recorded, where some that were recorded are not there any more.

    An artifact may be of fewer models than its notebook names. Those on the hub are pinned by revision.
    """
    identities = record.get("models") or ()
    recorded = {one.get("adapter", one.get("content", "")).removesuffix(" merged") for one in identities}
    now = {model: _model_hash(folder_of(model.removesuffix("#chat")), since)
           for _, model in resources.models_of(job.values) if not is_remote(model) and not resources.is_on_hub(model)}
    if recorded - {""} - set(now.values()):
        yield from (model for model, digest in now.items() if digest not in (UNCHANGED, *recorded))


def _model_hash(folder: Path, since: float) -> str:
    """The content's; of what is large and older than ``since``, UNCHANGED."""
    files = content_files(folder)
    if sum(file.stat().st_size for file in files) <= LARGE:
        return _content_hash(folder)
    return UNCHANGED if all(file.stat().st_mtime <= since for file in files) else "changed"


_content_hash = cache(content_hash)


def _changed_code(git: dict, job: Job) -> Iterator[tuple[str, list[str]]]:
    if not git.get("commit"):
        return
    changed = _changed_since(git["commit"])
    if changed is None:
        yield "code", [f"this checkout does not know the commit {git['commit'][:12]}"]
        return
    yield "notebook", [job.notebook.path.name] if job.notebook.path in changed else []
    yield "library", sorted(
        file.relative_to(sources.PACKAGE).as_posix() for file in sources.modules(job.notebook) & changed)


@cache
def _changed_since(commit: str) -> frozenset[Path] | None:
    """Files of the library and notebooks that differ from a commit; None where git does not know it."""
    try:
        done = subprocess.run(["git", "-C", str(paths.ROOT), "diff", "--name-only", "--relative", commit, "--", "lib",
                               "notebooks"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"git does not answer ({type(error).__name__}), so nothing can be compared") from None
    if done.returncode:
        return None
    return frozenset(paths.ROOT / name for name in done.stdout.splitlines())
