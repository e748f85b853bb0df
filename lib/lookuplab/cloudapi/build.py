"""``lookuplab data build cloudapi``: the API index from the installed SDKs (paper, Appendix A.2 steps 2 and 4).

Every service is one part file under ``runs/cloudapi``, written whole by a worker process. A build that was killed
continues with the parts that are missing. The result depends on the SDKs only: rows are sorted, no time is recorded.
"""

import hashlib
import importlib.metadata
import json
import lzma
import multiprocessing
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

import click
from tqdm import tqdm

from lookuplab import paths
from lookuplab.paths import replacing
from lookuplab.cloudapi import aws, azure, prose, specs
from lookuplab.cloudapi.specs import ApiSpec, from_json, to_json
from lookuplab.errors import UserError

SDKS = {"aws": aws, "azure": azure}
PARTS = paths.RUNS / "cloudapi"
COMMON = 4  # a name in more clients than this says nothing about the service


def build(providers: Iterable[str], folder: Path, jobs: int) -> Path:
    """Write ``index.jsonl.xz`` and ``documentation.jsonl.xz`` into ``folder`` and return it.

    Rows of providers that are not asked for stay as they are there. Raises UserError if an SDK is missing or has
    another version than the pinned one.
    """
    providers = sorted(providers)
    for provider in providers:
        check_versions(SDKS[provider].VERSIONS)
    parts = PARTS / fingerprint()
    parts.mkdir(parents=True, exist_ok=True)
    wanted = {(p, s): parts / f"{p}-{s}.jsonl" for p in providers for s in SDKS[p].services()}
    make_parts(wanted, jobs)
    rows = [row for path in wanted.values() for row in _read(path)]
    pages = [{"id": row["id"], "documentation": row["documentation"]} for row in rows if "documentation" in row]
    index = [to_json(spec) for spec in flagged([from_json(row["spec"]) for row in rows])]
    kept_index, kept_pages = _kept(folder, set(SDKS) - set(providers))
    folder.mkdir(parents=True, exist_ok=True)
    specs.write_rows(folder / specs.INDEX.name, sorted(index + kept_index, key=lambda row: from_json(row).id))
    specs.write_rows(folder / specs.DOCUMENTATION.name, sorted(pages + kept_pages, key=lambda row: row["id"]))
    shutil.rmtree(parts)
    return folder


def check_versions(versions: dict[str, str]) -> None:
    """Raise UserError unless exactly these packages are installed."""
    for package, version in versions.items():
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found = "none"
        if found != version:
            hint = 'run `pip install -c constraints.txt -e ".[sdk]"` in the checkout'
            raise UserError(f"the API index is built from {package} {version}, installed is {found}: {hint}")


def fingerprint() -> str:
    """Names the part folder: parts of another SDK version or of other builder code are not taken up."""
    digest = hashlib.sha256(json.dumps([aws.VERSIONS, azure.VERSIONS]).encode())
    for module in (aws, azure, prose, specs):
        digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()[:12]


def make_parts(wanted: dict[tuple[str, str], Path], jobs: int) -> None:
    """Make the part files that do not exist yet, in ``jobs`` processes."""
    missing = [(*key, path) for key, path in wanted.items() if not path.exists()]
    missing.reverse()  # quicksight takes a tenth of the time and shall not be the last one alone
    with (
        tqdm(total=len(wanted), initial=len(wanted) - len(missing), unit="service", desc="API index") as progress,
        ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        try:
            for future in as_completed([pool.submit(make_part, job) for job in missing]):
                future.result()
                progress.update()
        except BaseException:
            pool.shutdown(cancel_futures=True)  # else it would first make all the other parts
            raise


def make_part(job: tuple[str, str, Path]) -> None:
    """One service's rows ``{"id", "spec", "documentation"}``; the file appears only when it is complete."""
    provider, service, path = job
    pages = SDKS[provider].documentation(service)
    rows = []
    for spec in SDKS[provider].specifications(service):
        rows.append({"id": spec.id, "spec": to_json(spec)})
        if spec.id in pages:
            rows[-1]["documentation"] = pages[spec.id]
    with replacing(path) as unfinished:
        unfinished.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    del pages, rows
    aws.release()


def flagged(found: list[ApiSpec]) -> list[ApiSpec]:
    """Mark names that need more than themselves to say which API is meant, and that a benchmark leaves out.

    ``shared_name``: another client of the provider has an operation of this name. ``generic_name``: a single word
    (``encrypt``; ``begin_`` does not count), or a name in more than four clients (``list_by_resource_group``).
    """
    clients = defaultdict(set)
    for spec in found:
        if spec.operation:
            clients[spec.provider, spec.name].add((spec.service, spec.client))

    def flags(spec: ApiSpec) -> tuple[str, ...]:
        holders = len(clients[spec.provider, spec.name])
        single = "_" not in spec.name.removeprefix("begin_")
        return (("generic_name",) if single or holders > COMMON else ()) + (("shared_name",) if holders > 1 else ())

    return [replace(spec, flags=tuple(sorted({*spec.flags, *flags(spec)}))) for spec in found]


def _read(path: Path) -> list[dict]:
    with path.open(encoding="utf-8") as lines:  # not splitlines(): descriptions hold other line separators
        return [json.loads(line) for line in lines]


def _kept(folder: Path, providers: set[str]) -> tuple[list[dict], list[dict]]:
    """The rows of these providers in an index that stands already."""
    def read(name: str) -> list[dict]:
        if not (folder / name).exists():
            return []
        with lzma.open(folder / name, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    index = [row for row in read(specs.INDEX.name) if row["provider"] in providers]
    pages = [row for row in read(specs.DOCUMENTATION.name) if row["id"].split("/")[0] in providers]
    return index, pages


@click.command("cloudapi", short_help="The index of every AWS and Azure API.")
@click.option("--only", type=click.Choice(sorted(SDKS)), help="Build this provider; keep the other's rows.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), default=min(os.cpu_count() or 1, 8),
              show_default="processors, at most 8", help="Processes: one needs up to 700 MB, the others 120 MB.")
@click.option("--output", "-o", type=click.Path(file_okay=False, path_type=Path), default=specs.INDEX.parent,
              help="Folder to write to (default: data/mini/cloudapi).")
def command(only: str | None, jobs: int, output: Path) -> None:
    """Build the index of every AWS and Azure API from the installed SDKs.

    Needs the pinned SDK packages: pip install -c constraints.txt -e ".[sdk]". Takes some minutes; a build that
    was interrupted continues where it stopped.

    \b
    Examples:
      lookuplab data build cloudapi
      lookuplab data build cloudapi --only azure -o my_index
    """
    folder = build([only] if only else SDKS, output, jobs)
    click.echo(f"{len(specs.load_index(folder / specs.INDEX.name).specs)} APIs written to {folder}")
