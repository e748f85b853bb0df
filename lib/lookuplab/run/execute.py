"""Runs one notebook: papermill's own engine executes it in an ordinary Jupyter kernel.

The runner starts ``python -m lookuplab.run.execute`` for each notebook. The process's standard
input stays open as long as the runner lives. When the runner ends, even by kill -9, the input is
closed, and the kernel and all processes that the kernel started are killed.
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

from lookuplab.work import end_children

# pandas must compute the same results whatever else is installed; this is set only here, because in
# JupyterLab the user's own options count
OPTIONS = '"compute.use_bottleneck", False, "compute.use_numexpr", False'
PANDAS = f'__import__("pandas").set_option({OPTIONS})'
# a kernel is tried so many times, because two kernels that start at once may choose the same port
STARTS = 3


class Failure(NamedTuple):
    """Why a notebook failed. ``cell`` is the number n in the failed cell's ``In [n]`` in the
    executed copy, or 0 if no cell failed. ``source`` is the cell's code.
    """

    cell: int
    source: str
    ename: str
    evalue: str
    traceback: str


def execute(notebook: Path, copy: Path, parameters: dict[str, Any]) -> Failure | None:
    """Execute a notebook. Return the failure, or None if there was none. The ``copy`` is saved
    after each cell, so it exists even if a cell fails.
    """
    # papermill and jsonschema would take seconds to import these packages, which parse addresses or
    # read from cloud storage; no notebook needs that
    for unused in "rfc3987_syntax isoduration boto3 azure pyarrow".split():
        sys.modules.setdefault(unused, cast(ModuleType, None))
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
            # level ERROR suppresses the warning that messages to the kernel are not encrypted; only
            # this process sends any
            extra_arguments=[f"--IPKernelApp.exec_lines={PANDAS}", "--IPKernelApp.log_level=ERROR"],
        )
    except PapermillExecutionError as error:
        traceback = strip_color("\n".join(error.traceback))
        return Failure(error.exec_count, error.source, error.ename, error.evalue, traceback)
    return None


def end_with_the_runner(own: Path) -> None:
    """Wait until this process's input is closed, which also happens when the runner ends. Then end
    all descendants of this process, remove the run's folder ``own``, and exit.
    """
    while os.read(0, 1):
        pass
    end_children()
    shutil.rmtree(own, ignore_errors=True)
    os._exit(1)  # sys.exit would end only this thread; papermill runs in the main thread


def main() -> None:
    notebook, copy, parameters, folder, processors = json.loads(sys.argv[1])
    own = Path(folder)
    threading.Thread(target=end_with_the_runner, args=[own], daemon=True).start()
    if processors:
        os.sched_setaffinity(0, processors)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    for _ in range(STARTS):
        try:
            failure = execute(Path(notebook), Path(copy), parameters)
            break
        except Exception as error:
            name = type(error).__name__
            if name == "DeadKernelError":
                raise  # the runner finds no file ``failure``, and reports that the process died
            failure = Failure(0, "", name, str(error), "")
            # nbclient raises RuntimeError if the kernel did not start; only then try again
            if type(error) is not RuntimeError:
                break
    (own / "failure").write_text(json.dumps(failure), "utf-8")


if __name__ == "__main__":
    main()
