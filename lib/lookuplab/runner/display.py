"""What the terminal shows while notebooks run, and what it says at the end."""

import signal
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn,
                           TimeRemainingColumn)

from lookuplab.cluster import Cluster
from lookuplab.runner.execute import Failure, Result, run_jobs
from lookuplab.runner.plan import Job


class Terminal:
    """One bar for the notebooks and one for each that runs; where there is no terminal, one line as each ends."""

    def __init__(self, total: int, console: Console | None = None):
        self.console = console or Console(stderr=True, highlight=False)
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(),
                   TextColumn("[dim]to go[/]"), TimeRemainingColumn(),
                   TextColumn("[dim]{task.fields[text]}", markup=True))
        self.progress = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        self.overall = self.progress.add_task("notebooks", total=total, text="")
        self.tasks: dict[str, int] = {}

    def __call__(self, job: Job, event: dict) -> None:
        key = str(job.output)
        match event["event"]:
            case "start":
                self.tasks[key] = self.progress.add_task(f"  {job.notebook.id}", total=None, text="starting")
            case "cell":
                self.progress.update(self.tasks[key], completed=event["index"] - 1, total=event["total"], text="")
            case "text":
                self.progress.update(self.tasks[key], text=escape(event["text"][: max(10, self.console.width - 90)]))
            case "retry":
                said = f"{job.notebook.id}: the kernel did not start, attempt {event['attempt']}"
                self.console.print(said, style="yellow")
            case "end":
                self.progress.remove_task(self.tasks.pop(key))
                self.progress.advance(self.overall)
                self._ended(event["result"])

    def _ended(self, result: Result) -> None:
        mark = "[green]done[/]" if result.failure is None else "[red]failed[/]"
        self.console.print(f"{mark} {escape(_title(result.job))} [dim]{result.seconds:.1f} s[/]")


def run_and_report(jobs: Sequence[Job], parallel: int, cluster: Cluster | None = None) -> int:
    """Run the jobs under a progress display; print failures and return the exit code.

    0: all ran. 1: some failed. 2: all that failed did so for a UserError, bad input that only they could find.
    130: interrupted.
    """
    terminal = Terminal(len(jobs))
    began = time.monotonic()
    try:
        with _terminated_as_interrupted(), terminal.progress:
            results = run_jobs(jobs, parallel, terminal, cluster)
    except KeyboardInterrupt:
        terminal.console.print("interrupted; what was generated is kept, the same command goes on from there")
        return 130
    failed = [result for result in results if result.failure]
    for result in failed:
        _print_failure(terminal.console, result, result.failure)
    seconds = time.monotonic() - began
    terminal.console.print(f"{len(results) - len(failed)} of {len(results)} notebooks ran in {seconds:.1f} s")
    if not failed:
        return 0
    return 2 if all(result.failure.is_user_error for result in failed) else 1


def _print_failure(console: Console, result: Result, failure: Failure) -> None:
    name = escape(_title(result.job))
    if failure.is_user_error:
        console.print(f"[red]error:[/] {name}: {escape(failure.evalue)}", soft_wrap=True)
        return
    where = f"cell {failure.cell}: " if failure.cell else ""
    console.print(f"\n[red]{name}[/]: {where}{escape(failure.ename)}: {escape(failure.evalue)}", soft_wrap=True)
    if failure.source:
        console.print(textwrap.indent(failure.source, "    "), markup=False, soft_wrap=True)
    tail = "\n".join(failure.traceback.splitlines()[-12:])
    console.print(textwrap.indent(tail, "    | "), markup=False, style="dim", soft_wrap=True)
    console.print(f"the executed copy: {escape(str(result.job.output))}", soft_wrap=True)


def _title(job: Job) -> str:
    """Cases of a sweep share the notebook: the number of their folder tells them apart."""
    case = job.output.parent.name
    return f"{job.notebook.id} [{case}]" if case.isdigit() else job.notebook.id


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends the children as Ctrl-C does."""
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
