"""Executes one notebook in a process of its own: ``python -m lookuplab.runner.worker``.

The first line of stdin is the job as JSON; stdin stays open as a lifeline, and when it closes (the runner is gone, even
by kill -9) the worker ends its kernel and itself. Events leave as JSON lines on stdout; what the kernel itself prints
goes to stderr.
"""

import json
import os
import sys
import threading
import time
from typing import Any

# jsonschema's check of international addresses, which notebooks have none of: it builds its grammar at every import,
# half of the time that a worker needs to start.
sys.modules.setdefault("rfc3987_syntax", None)

import nbformat  # noqa: E402
from papermill import execute_notebook  # noqa: E402
from papermill.clientwrap import PapermillNotebookClient  # noqa: E402
from papermill.engines import NBClientEngine, papermill_engines  # noqa: E402
from papermill.exceptions import PapermillExecutionError, strip_color  # noqa: E402

from lookuplab.runner.machine import condition  # noqa: E402


class Events:
    """Writes events to the runner. The kernel inherits stderr in place of stdout, so nothing else gets in between."""

    def __init__(self) -> None:
        self._pipe = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
        os.dup2(2, 1)
        self.cells_started = 0
        self._last_text = 0.0

    def send(self, event: str, **fields: Any) -> None:
        print(json.dumps({"event": event, **fields}), file=self._pipe, flush=True)

    def cell(self, index: int, total: int) -> None:
        self.cells_started += 1
        self.send("cell", index=index, total=total)

    def text(self, text: str) -> None:
        """The last line that the running cell has printed (its progress bar), twice a second at most."""
        lines = text.replace("\r", "\n").split("\n")
        line = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if line and time.monotonic() - self._last_text > 0.5:
            self._last_text = time.monotonic()
            self.send("text", text=strip_color(line)[:200])


class ReportingClient(PapermillNotebookClient):
    """Papermill's client, telling which cell runs and what it prints."""

    events: Events

    def papermill_execute_cells(self) -> None:
        total, start = len(self.nb.cells), self.nb_man.cell_start

        def cell_start(cell: nbformat.NotebookNode, cell_index: int | None = None, **kwargs: Any) -> None:
            self.events.cell((cell_index or 0) + 1, total)
            start(cell, cell_index, **kwargs)

        self.nb_man.cell_start = cell_start
        super().papermill_execute_cells()

    def process_message(self, *args: Any, **kwargs: Any) -> nbformat.NotebookNode | None:
        output = super().process_message(*args, **kwargs)
        if output and output.output_type == "stream":
            self.events.text(output.text)
        return output


class ReportingEngine(NBClientEngine):
    """Papermill's engine with the reporting client; progress bars are kept as their last state, not as a flood."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, start_timeout: int = 60, **kwargs: Any) -> Any:
        return ReportingClient(nb_man, kernel_name=kernel_name, startup_timeout=start_timeout, timeout=None,
                               coalesce_streams=True).execute()


def run(job: dict, events: Events) -> None:
    """Execute; send ``done``, ``failed`` (a cell raised) or ``kernel`` (it did not start, worth another try)."""
    ReportingClient.events = events
    papermill_engines.register("reporting", ReportingEngine)
    try:
        execute_notebook(
            _literal(job["input"]), _literal(job["output"]), job["parameters"], engine_name="reporting",
            kernel_name=job["kernel"], progress_bar=False, cwd=job["cwd"], start_timeout=job["start_timeout"],
        )
        events.send("done")
    except PapermillExecutionError as error:
        events.send("failed", cell=_code_cell_number(job["output"], error), source=error.source, ename=error.ename,
                    evalue=error.evalue, traceback=strip_color("\n".join(error.traceback)))
    except Exception as error:
        if isinstance(error, OSError) and (said := condition(error)):
            events.send("failed", cell=0, source="", ename="UserError", evalue=said, traceback="")
            return
        kind = "failed" if events.cells_started else "kernel"
        events.send(kind, cell=0, source="", ename=type(error).__name__, evalue=str(error), traceback="")


def _literal(path: str) -> str:
    """Papermill formats paths; braces in a folder's name are no placeholders."""
    return path.replace("{", "{{").replace("}", "}}")


def _code_cell_number(output: str, error: PapermillExecutionError) -> int:
    """1-based number among the author's code cells, which the cell that papermill injects is none of; 0 if unknown."""
    try:
        cells = [cell for cell in nbformat.read(output, as_version=4).cells if cell.cell_type == "code"]
    except Exception:  # a full disk, or another run of the notebook that writes it now: the error itself matters more
        return 0
    mine = [cell for cell in cells if "injected-parameters" not in cell.metadata.get("tags", ())]
    return next((number for number, cell in enumerate(mine, 1) if cell.get("execution_count") == error.exec_count), 0)


def _end_with_the_runner() -> None:
    import psutil

    sys.stdin.read()
    for child in psutil.Process().children(recursive=True):
        child.kill()
    os._exit(1)


def main() -> None:
    job = json.loads(sys.stdin.readline())
    events = Events()
    threading.Thread(target=_end_with_the_runner, daemon=True).start()
    run(job, events)


if __name__ == "__main__":
    main()
