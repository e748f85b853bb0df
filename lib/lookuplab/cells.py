"""In a notebook's process: papermill injects the parameters and saves the executed copy, IPython
runs the cells.

A Jupyter kernel would be a second process with ports, a start-up time and imports of its own;
``runner`` forks this one with the imports done. Outputs are those of a kernel; widgets show
nothing, since no browser answers them.

Nothing of the library but ``errors`` is imported before ``execute`` has set the environment, which
other modules read.
"""

import atexit
import io
import multiprocessing
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import papermill
import psutil
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_output
from papermill.engines import Engine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError, strip_color

from lookuplab.errors import explained

NAME = "in-process"
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)")  # what a progress bar wrote over


class _Stream(io.TextIOBase):
    """stdout or stderr: ``write`` appends to the outputs of the cell that runs, ``tell`` hears
    the text.
    """

    encoding = "utf-8"  # a progress bar asks

    def __init__(self, name: str, outputs: Callable[[], list], tell: Callable[[str], None]):
        self.name, self.outputs, self.tell = name, outputs, tell

    def write(self, text: str) -> int:
        outputs = self.outputs()
        if not (outputs and outputs[-1].get("name") == self.name):
            outputs.append(new_output("stream", name=self.name))
        outputs[-1].text = _OVERWRITTEN.sub("", outputs[-1].text + text)
        if text.strip():
            self.tell(" ".join(text.split()))
        return len(text)


class InProcess(Engine):
    """Runs the cells one after another and stops after the first that raises."""

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: NotebookExecutionManager,
        kernel_name: str,
        *,
        tell: Callable[[int, int, str], None],
        **_: Any,
    ) -> None:
        """``tell`` is called with the number of the author's code cell that runs, how many there
        are, and a text.
        """
        HistoryManager.enabled = False  # no database of past inputs
        shell = InteractiveShell.instance()
        cells = [cell for cell in nb_man.nb.cells if cell.cell_type == "code"]
        injected = ["injected-parameters" in cell.metadata.get("tags", ()) for cell in cells]
        at = 0

        def said(text: str) -> None:
            tell(at + 1 - sum(injected[: at + 1]), len(cells) - sum(injected), text)

        def show(kind: str, data: dict, metadata: dict | None, **more: Any) -> None:
            cells[at].outputs.append(new_output(kind, data, metadata=metadata or {}, **more))

        def last_value(value: Any) -> None:
            if value is not None and not shell.displayhook.quiet():
                show(
                    "execute_result",
                    *shell.display_formatter.format(value),
                    execution_count=shell.execution_count,
                )

        def failed(etype: type, evalue: BaseException, stb: list[str]) -> None:
            cells[at].outputs.append(
                new_output("error", ename=etype.__name__, evalue=str(evalue), traceback=stb)
            )

        shell.display_trap.hook = last_value
        shell.display_pub.publish = lambda data, metadata=None, **_: show(
            "display_data", data, metadata
        )
        shell._showtraceback = failed
        streams = [_Stream(name, lambda: cells[at].outputs, said) for name in ("stdout", "stderr")]
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            for at, cell in enumerate(cells):  # noqa: B007  the functions above read it
                said("")
                nb_man.cell_start(cell)
                cell.execution_count = shell.execution_count
                is_fine = shell.run_cell(cell.source, store_history=True).success
                if not is_fine:
                    nb_man.cell_exception(cell)
                nb_man.cell_complete(cell)
                if not is_fine:
                    break


papermill_engines.register(NAME, InProcess)


def execute(
    environment: dict[str, str],
    notebook: Path,
    copy: Path,
    parameters: dict[str, Any],
    send: Connection,
) -> None:
    """Run a notebook; send None, or a failure: (the number of the code cell or 0, its source,
    the error's name and message, the traceback). Beside the copy, ``.progress`` says how far it
    is, ``.log`` holds what libraries print.
    """
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    # a fork server that the notebook uses is a child of its own, not the runner's
    forkserver._forkserver.__init__()
    os.environ.clear()
    os.environ.update(environment)
    with open(copy.with_suffix(".log"), "wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    at, last = 0, 0.0

    def tell(cell: int, total: int, text: str) -> None:
        nonlocal at, last
        if cell > at or time.monotonic() - last > 0.5:
            at, last = cell, time.monotonic()
            copy.with_suffix(".progress").write_text(
                f"{cell}/{total} {text[-100:]}", encoding="utf-8"
            )

    source, output = (
        str(path).replace("{", "{{").replace("}", "}}") for path in (notebook, copy)
    )  # no placeholders
    failure = None
    try:
        papermill.execute_notebook(
            source,
            output,
            parameters,
            engine_name=NAME,
            kernel_name="python3",
            language="python",
            progress_bar=False,
            cwd=notebook.parent,
            tell=tell,
        )
    except PapermillExecutionError as error:
        failure = (
            at,
            error.source,
            error.ename,
            error.evalue,
            strip_color("\n".join(error.traceback)),
        )
    except Exception as error:
        said = explained(error) if isinstance(error, OSError) else None
        failure = 0, "", "UserError" if said else type(error).__name__, said or str(error), ""
    send.send(failure)
    atexit._run_exitfuncs()  # multiprocessing's processes do not; temporary folders are removed so


def _end_with_the_parent() -> None:
    """Whatever ends the process that waits for this one, kill -9 included, ends this one and all
    that it started.
    """
    multiprocessing.parent_process().join()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
    os._exit(1)
