"""Runs notebooks: papermill's own engine executes each in an ordinary Jupyter kernel.

The runner starts ``python -m lookuplab.run.execute``, which imports the modules that most notebooks
need. For each notebook, it forks a process for papermill, which forks the kernel. Each kernel is a
new process that nothing has run in, but the imports, which would take several seconds, are done.

Between the runner and the process of a notebook there is a pair of sockets. When the runner's
socket closes, even by kill -9, the kernel and all processes that it started are killed.
"""

import gc
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from socket import recv_fds, socket
from types import ModuleType
from typing import Any, NamedTuple, cast

from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.work import end_children

# papermill and jsonschema would spend seconds on importing these, for grammars of addresses and for
# storage in clouds, which they do not need here
UNUSED = {*"rfc3987_syntax isoduration boto3 azure pyarrow".split()}


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
        )
    except PapermillExecutionError as error:
        traceback = strip_color("\n".join(error.traceback))
        return Failure(error.exec_count, error.source, error.ename, error.evalue, traceback)
    return None


def become_kernel(own: Path) -> None:
    """Run a kernel in this process. It starts when the command of its specification opens the pipe
    ``alive``, and that command ends with this process. By then, the connection file is complete.
    """
    os.setsid()  # as jupyter starts kernels
    with (own / "alive").open("w"):
        import pandas
        from ipykernel.kernelapp import IPKernelApp

        # pandas must compute the same results whatever else is installed; this is set only here,
        # because in JupyterLab the user's own options count
        pandas.set_option("compute.use_bottleneck", False, "compute.use_numexpr", False)
        (connection,) = map(str, own.glob("*.json"))
        told = f"--IPKernelApp.parent_handle={os.getppid()} --HistoryManager.hist_file=:memory: "
        # level ERROR suppresses the warning that messages to the kernel are not encrypted; only
        # papermill sends any
        told += "--IPKernelApp.log_level=ERROR"
        IPKernelApp.launch_instance(["-f", connection, *told.split()])


def end_with_the_runner(runner: socket, own: Path) -> None:
    """Wait for the runner to end. Then end all descendants of this process, remove the run's folder
    ``own``, and exit.
    """
    runner.recv(1)
    end_children()
    shutil.rmtree(own, ignore_errors=True)
    os._exit(1)  # sys.exit would end only this thread; papermill runs in the main thread


def run(runner: socket, own: Path) -> None:
    """Execute the notebook that the runner describes in the file ``told``, and write its failure,
    or null, to the file ``failure``. No such file means that the kernel died.
    """
    notebook, copy, parameters, processors, environment = json.loads((own / "told").read_text())
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # so that it is found again, in this environment
    if processors:
        os.sched_setaffinity(0, processors)
    if not (kernel := os.fork()):
        runner.close()
        os.chdir(Path(notebook).parent)
        become_kernel(own)
        return
    threading.Thread(target=end_with_the_runner, args=[runner, own], daemon=True).start()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        failure = execute(Path(notebook), Path(copy), parameters)
    except Exception as error:
        name = type(error).__name__
        if name == "DeadKernelError":
            raise
        failure = Failure(0, "", name, str(error), "")
    finally:
        os.kill(kernel, signal.SIGKILL)  # it may still wait to be started
        os.waitpid(kernel, 0)
    (own / "failure").write_text(json.dumps(failure), "utf-8")


def main() -> None:
    """Import the modules that the arguments name. Then run each notebook that the runner requests,
    in a separate process. A request is the path of the run's folder, a socket and the log.
    """
    for module in sys.argv[1:]:
        import_module(module)
    if sys.argv[1:]:
        with suppress(UserError):  # if the record is damaged, the notebooks will say so
            record.rows("completions", [""])
            record.Audit.sample("completions")
    missing = UNUSED - sys.modules.keys()
    sys.modules.update(dict.fromkeys(missing, cast(ModuleType, None)))
    import_module("papermill")
    for name in missing:
        del sys.modules[name]
    gc.freeze()  # otherwise every kernel would search all of this for garbage
    requests = socket(fileno=os.dup(0))
    while (request := recv_fds(requests, 4096, 2))[0]:
        own, (runner, log), *_ = request
        if not os.fork():
            for place, given in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
                os.dup2(given, place)
            run(socket(fileno=runner), Path(os.fsdecode(own)))
            return
        os.close(runner)
        os.close(log)
    with suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    main()
