"""Runs in a notebook's process: papermill injects the parameters and saves the executed copy, IPython runs the cells.

A Jupyter kernel would be a second process with its own ports, start-up time and imports; ``runner`` forks this process
after the imports are done. Outputs are the same as a kernel's; widgets show nothing, since no browser is connected.

Of the library, only ``errors`` is imported before ``execute`` has set the environment, which other modules read.
"""

import atexit
import io
import multiprocessing
import os
import re
import sys
import threading
from contextlib import redirect_stderr, redirect_stdout, suppress
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

# if this is installed, jsonschema builds a grammar of web addresses (two seconds per process), which no notebook needs
sys.modules.setdefault("rfc3987_syntax", None)

import papermill
import psutil
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode
from nbformat.v4 import new_output
from papermill.engines import Engine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError, strip_color

from lookuplab.errors import explained

_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)")  # text that a progress bar has overwritten


class Failure(NamedTuple):
    """Why a notebook failed. ``cell`` is the 1-based number among its code cells, 0 if no cell is to blame."""

    cell: int
    source: str
    ename: str
    evalue: str
    traceback: str


class _Stream(io.TextIOBase):
    """stdout or stderr: text goes to the outputs of ``cell`` and to the log."""

    encoding = "utf-8"  # progress bars read this

    def __init__(self, name: str):
        self.name, self.cell = name, NotebookNode(outputs=[])

    def write(self, text: str) -> int:
        os.write(1, text.encode())
        outputs = self.cell.outputs
        if not (outputs and outputs[-1].get("name") == self.name):
            outputs.append(new_output("stream", name=self.name))
        outputs[-1].text = _OVERWRITTEN.sub("", outputs[-1].text + text)
        return len(text)


class InProcess(Engine):
    """Runs the cells in order and stops after the first that raises."""

    number = 0  # of the cell that runs, among the notebook's own code cells

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: NotebookExecutionManager, kernel_name: str, **_: Any
    ) -> None:
        HistoryManager.enabled = False  # no database of past inputs
        shell = InteractiveShell.instance()
        out, err = _Stream("stdout"), _Stream("stderr")

        def show(kind: str, data: Any = None, metadata: Any = None, **content: Any) -> None:
            content |= {"data": data, "metadata": metadata or {}} if data else {}
            out.cell.outputs.append(new_output(kind, **content))

        def last_value(value: Any) -> None:
            if value is not None and not shell.displayhook.quiet():
                number = shell.execution_count
                show(
                    "execute_result", *shell.display_formatter.format(value), execution_count=number
                )

        def error(kind: type, error: Exception, lines: list[str]) -> None:
            said = explained(error)
            name = "UserError" if said else kind.__name__
            show("error", ename=name, evalue=said or str(error), traceback=lines)

        shell.display_trap.hook = last_value
        shell.display_pub.publish = lambda data, metadata=None, **_: show(
            "display_data", data, metadata
        )
        shell._showtraceback = error
        cells = [cell for cell in nb_man.nb.cells if cell.cell_type == "code"]
        with redirect_stdout(out), redirect_stderr(err):
            injected = ["injected-parameters" in cell.metadata.get("tags", ()) for cell in cells]
            for cell, is_injected in zip(cells, injected, strict=True):
                cls.number += not is_injected
                os.write(1, f"\ncell {cls.number} of {injected.count(False)}\n".encode())
                out.cell = err.cell = cell
                nb_man.cell_start(cell)
                cell.execution_count = shell.execution_count
                is_fine = shell.run_cell(cell.source, store_history=True).success
                if not is_fine:
                    nb_man.cell_exception(cell)
                nb_man.cell_complete(cell)
                if not is_fine:
                    break


papermill_engines.register("in-process", InProcess)


def execute(
    environment: dict[str, str],
    notebook: Path,
    copy: Path,
    parameters: dict[str, Any],
    send: Connection,
) -> None:
    """Run a notebook; send None or a Failure. The ``.log`` file beside the copy has everything printed."""
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    # if the notebook uses a fork server, it must be its own child, not the runner's
    forkserver._forkserver.__init__()
    os.environ.clear()
    os.environ.update(environment)
    with open(copy.with_suffix(".log"), "wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    # papermill would read braces as placeholders
    source, output = (str(path).replace("{", "{{").replace("}", "}}") for path in (notebook, copy))
    kernel = {"engine_name": "in-process", "kernel_name": "python3", "language": "python"}
    failure = None
    try:
        papermill.execute_notebook(
            source, output, parameters, progress_bar=False, cwd=notebook.parent, **kernel
        )
    except PapermillExecutionError as error:
        traceback = strip_color("\n".join(error.traceback))
        failure = Failure(InProcess.number, error.source, error.ename, error.evalue, traceback)
    except Exception as error:
        said = explained(error)
        name = "UserError" if said else type(error).__name__
        failure = Failure(0, "", name, said or str(error), "")
    send.send(failure)
    atexit._run_exitfuncs()  # multiprocessing's processes do not run these, which remove temporary folders


def _end_with_the_parent() -> None:
    """When the parent ends, even by kill -9, end this process and all processes that it started."""
    multiprocessing.parent_process().join()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
    os._exit(1)
