"""The marked corpus (paper, Section III-B): one JSON line a function, written as it is done, resumed after a kill."""

import json
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tqdm import tqdm

from lookuplab.paths import write_lines
from lookuplab.cluster import Cluster, check_seen, kept
from lookuplab.errors import UserError
from lookuplab.toolgen.files import LeftOut, Repository, parse
from lookuplab.toolgen.filters import Filters
from lookuplab.toolgen.functions import Function, extract
from lookuplab.toolgen.jedi_tool import TIME_LIMIT, JediTool, Worker
from lookuplab.toolgen.marking import MARK, mark

# Section IV-B, "Code Augmentation". The paper does not say which tokens it counts; ours are Python's, and a docstring's
# are its words.
PAPER = {"functions": 256_870, "repositories": 12_231, "docstring tokens": 10.96, "function tokens": 54.13,
         "marks": 5.37}


@dataclass
class Corpus:
    """The records of a marked corpus, and how often which reason left a file, a function or a call to Jedi out."""

    records: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter = field(default_factory=Counter)

    def statistics(self) -> dict[str, float]:
        """The paper's five numbers: counts, and means a function (0 for an empty corpus)."""
        def mean(name: str) -> float:
            return statistics.fmean(record[name] for record in self.records) if self.records else 0.0

        return {"functions": len(self.records), "repositories": len({r["repository"] for r in self.records}),
                "docstring tokens": mean("docstring_tokens"), "function tokens": mean("function_tokens"),
                "marks": mean("marks")}


def build(repositories: Sequence[Repository], output: Path, filters: Filters = Filters(), variant: str = "paper",
          workers: int | None = None, time_limit: float = TIME_LIMIT,
          count_tokens: Callable[[str], int] | None = None, progress: bool = True, cluster: Cluster | None = None
          ) -> Corpus:
    """Extract and mark the functions of ``repositories`` into ``output`` (JSON Lines).

    Lines that ``output`` already holds are kept where source and variant are the same, so that a run that was killed
    goes on where it ended; delete the file after changes elsewhere in a repository. A function whose calls failed stays
    in the corpus with the marks that were found; its record counts the failures. Raises UserError for two repositories
    of one name, and where ``output`` cannot be written or holds something else. ``cluster`` marks on its workers.
    """
    names = [repository.name for repository in repositories]
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise UserError(f"two repositories are called {twice[0]!r}: ids would collide; rename one folder")
    if other := {record["repository"] for record in load(output)} - set(names):
        raise UserError(f"{output} holds functions of {min(other)!r}, which is not asked for; give another output")
    corpus, seen, functions = Corpus(), set(), []
    for repository in tqdm(repositories, "reading", unit=" repositories", disable=not progress):
        extraction = extract(repository, filters, seen, count_tokens)
        functions += extraction.functions
        corpus.left_out.update(extraction.left_out)
    records = mark_into(functions, output, filters, variant, workers, time_limit, cluster)
    corpus.records = list(tqdm(records, "marking", len(functions), unit=" functions", disable=not progress))
    for record in corpus.records:
        corpus.left_out.update({f"call: {reason}": n for reason, n in record["failures"].items()})
    return corpus


def load(path: Path) -> list[dict[str, Any]]:
    """The records of a corpus file; a last line that a kill cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    try:
        records = [json.loads(line) for line in lines[:-1]]
        if all({"id", "repository", "source", "variant"} <= set(record) for record in records):
            return records
    except (json.JSONDecodeError, TypeError):
        pass
    raise UserError(f"{path} is no marked corpus; give another output, or delete it")


def mark_into(functions: Sequence[Function], output: Path, filters: Filters = Filters(), variant: str = "paper",
              workers: int | None = None, time_limit: float = TIME_LIMIT, cluster: Cluster | None = None
              ) -> Iterator[dict[str, Any]]:
    """Every function's record, in order; those that ``output`` holds are taken from there.

    A new one is appended to ``output`` when it is done; in the end all stand there in order.
    """
    done = {record["id"]: record for record in load(output)}
    ready = {f.id: done[f.id] for f in functions
             if f.id in done and (done[f.id]["source"], done[f.id]["variant"]) == (f.source, variant)}
    _start(output, [ready[f.id] for f in functions if f.id in ready])
    pending = [f for f in functions if f.id not in ready]
    with JediTool(workers, time_limit) as tool, output.open("a", encoding="utf-8", newline="\n") as stream, \
            closing(_on_cluster(pending, cluster, filters, variant, time_limit) if cluster else
                    _file_by_file(pending, tool, filters, variant)) as new:
        for function in functions:
            while function.id not in ready:
                record = next(new)
                stream.write(json.dumps(record, ensure_ascii=False) + "\n")
                stream.flush()
                ready[record["id"]] = record
            yield ready[function.id]
    _start(output, [ready[f.id] for f in functions])


def _file_by_file(functions: list[Function], tool: JediTool, filters: Filters, variant: str
                  ) -> Iterator[dict[str, Any]]:
    """Records as they are done. Functions of one file go to one worker in a row: it has parsed the rest of the file."""
    done: SimpleQueue[dict[str, Any] | BaseException] = SimpleQueue()
    stop = threading.Event()

    def one_file(group: list[Function]) -> None:
        try:
            lines = _lines(group[0], filters)
            with tool.lease(group[0].root, group[0].file) as worker:
                for function in group:
                    if not stop.is_set():
                        done.put(_record(function, lines, worker, variant))
        except BaseException as error:
            done.put(error)

    with ThreadPoolExecutor(len(tool.workers)) as threads:
        try:
            for _, group in groupby(functions, key=lambda function: (function.root, function.file)):
                threads.submit(one_file, list(group))
            for _ in functions:
                item = done.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stop.set()
            threads.shutdown(cancel_futures=True)


def _on_cluster(functions: list[Function], cluster: Cluster, filters: Filters, variant: str, time_limit: float
                ) -> Iterator[dict[str, Any]]:
    """Records as they are done. The functions of one file are one task."""
    groups = groupby(functions, key=lambda function: (function.root, function.file))
    tasks = [(list(group), filters, variant, time_limit) for _, group in groups]
    for _, records in cluster.map(_mark_there, tasks):
        yield from records


def _mark_there(task: tuple[list[Function], Filters, str, float]) -> list[dict[str, Any]]:
    """One file's records, on a worker of a cluster."""
    functions, filters, variant, time_limit = task
    root, file = functions[0].root, functions[0].file
    check_seen(root / file)
    with kept(JediTool, 1, time_limit).lease(root, file) as worker:
        return [_record(function, _lines(functions[0], filters), worker, variant) for function in functions]


def _start(output: Path, records: list[dict[str, Any]]) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    write_lines(output, (json.dumps(record, ensure_ascii=False) for record in records))


def _lines(function: Function, filters: Filters) -> list[str]:
    try:
        return parse(function.root / function.file, filters).lines
    except LeftOut as reason:  # the file changed while we were at work
        raise UserError(f"{function.id}: {reason}; the repository must not change during the run") from None


def _record(function: Function, lines: list[str], worker: Worker, variant: str) -> dict[str, Any]:
    marked = mark(function, lines, worker, variant)
    return {"id": function.id, "repository": function.repository, "file": function.file, "line": function.line,
            "end_line": function.end_line, "name": function.qualified_name, "indent": function.indent,
            "docstring": function.docstring, "signature": function.signature, "body": function.body,
            "marked_signature": marked.signature, "marked_body": marked.body, "source": function.source,
            "variant": variant, "mark": MARK, "marks": len(marked.marks), "positions": marked.marks,
            "asked": marked.asked, "failures": dict(sorted(marked.failures.items())),
            "docstring_tokens": len(function.docstring.split()), "function_tokens": len(function.tokens)}
