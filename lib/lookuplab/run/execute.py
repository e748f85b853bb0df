"""Runs one notebook: papermill with its own engine executes it in an ordinary Jupyter kernel.

The runner starts ``python -m lookuplab.run.execute`` for each notebook, whose standard input stays
open as long as the runner lives. When it closes, even by kill -9, the kernel and all that it
started are killed.
"""

import json
import logging
import os
import shutil
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

from lookuplab.work.stopping import end_children

# pandas must compute the same, whatever else is installed; not where a user works, whose own
# options these are
OPTIONS = '"compute.use_bottleneck", False, "compute.use_numexpr", False'
PANDAS = f'__import__("pandas").set_option({OPTIONS})'
STARTS = 3  # tries to start a kernel: of several at once, two may have picked the same port


class Failure(NamedTuple):
    """Why a notebook failed. ``cell`` is the number before the cell in the executed copy: n of
    ``In [n]``, 0 if no cell is to blame.
    """

    cell: int
    source: str
    ename: str
    evalue: str
    traceback: str


def execute(notebook: Path, copy: Path, parameters: dict[str, Any]) -> Failure | None:
    """Execute a notebook; the copy is saved as its cells end, whatever happens."""
    # jsonschema would compile a grammar of web addresses, two seconds, which no notebook needs
    sys.modules.setdefault("rfc3987_syntax", cast(ModuleType, None))
    import papermill
    from papermill.exceptions import PapermillExecutionError, strip_color

    # papermill would read braces as placeholders
    places = (str(path).replace("{", "{{").replace("}", "}}") for path in (notebook, copy))
    try:
        papermill.execute_notebook(
            *places,
            parameters,
            kernel_name="python3",
            language="python",
            start_timeout=300,
            cwd=notebook.parent,
            progress_bar=False,
            log_output=True,
            extra_arguments=[f"--IPKernelApp.exec_lines={PANDAS}"],
        )
    except PapermillExecutionError as error:
        traceback = strip_color("\n".join(error.traceback))
        return Failure(error.exec_count, error.source, error.ename, error.evalue, traceback)
    return None


def end_with_the_runner(own: Path) -> None:
    """Wait for the runner to close this process's input, or to end; then end all processes below
    this one, remove the run's folder ``own``, and end.
    """
    while os.read(0, 1):
        pass
    end_children()
    shutil.rmtree(own, ignore_errors=True)
    os._exit(1)  # papermill waits for the kernel in the main thread


def main() -> None:
    notebook, copy, parameters, folder, processors = json.loads(sys.argv[1])
    own = Path(folder)
    threading.Thread(target=end_with_the_runner, args=[own], daemon=True).start()
    if processors:
        os.sched_setaffinity(0, processors)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    logging.getLogger("papermill").setLevel(logging.INFO)
    for _ in range(STARTS):
        try:
            failure = execute(Path(notebook), Path(copy), parameters)
            break
        except Exception as error:
            name = type(error).__name__
            if name == "DeadKernelError":
                raise  # without a result, the runner says that the process died
            failure = Failure(0, "", name, str(error), "")
            if type(error) is not RuntimeError:  # nbclient's, for a kernel that did not start
                break
    (own / "failure").write_text(json.dumps(failure), "utf-8")


if __name__ == "__main__":
    main()
