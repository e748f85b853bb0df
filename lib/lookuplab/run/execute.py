"""Runs notebooks: papermill's own engine executes each notebook in an ordinary Jupyter kernel.

The runner starts ``python -m lookuplab.run.execute``. This process imports the modules that most
notebooks need, which takes several seconds. For each notebook it forks a process for papermill,
which in turn forks the kernel. Every kernel is therefore a fresh process in which these modules are
already imported.

A pair of sockets connects the runner with papermill's process. When the runner's socket closes,
even because the runner was killed, the kernel and all processes that it started are killed.
"""

import atexit
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
from typing import Any, NamedTuple, NoReturn

from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.work import end_children

# Papermill, jsonschema and ipykernel import these packages if they are installed, which takes
# seconds. The packages serve cloud storage, checks of URLs and debugging, so they are not needed.
UNUSED = {*"rfc3987_syntax isoduration boto3 azure pyarrow debugpy".split()}


class Failure(NamedTuple):
    """The error that ended a notebook. ``cell`` is the number of the failed cell, as in ``In [3]``
    in the executed copy, or 0 if no cell failed. ``source`` is the cell's code. ``ename`` and
    ``evalue`` are the name and the message of the exception.
    """

    cell: int
    source: str
    ename: str
    evalue: str
    traceback: str


def execute(notebook: Path, copy: Path, parameters: dict[str, Any]) -> Failure | None:
    """Execute a notebook, and return its failure, or None if there was none. The executed ``copy``
    is saved after each cell, so it exists even if a cell fails.
    """
    import papermill
    from papermill.exceptions import PapermillExecutionError, strip_color

    # braces are doubled, because papermill takes single braces for placeholders
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


def become_kernel(run_folder: Path) -> None:
    """Run a kernel in this process. ``run_folder`` is the run's temporary folder.

    Papermill writes a connection file. Then it starts the command in the kernel's specification,
    and watches the command's process. In the kit's specification, the command only reads the pipe
    ``alive`` (``runner._run``). This process opens the pipe for writing, and thereby waits until
    the command has started and the connection file is complete. When this process ends, the pipe
    closes, the command ends, and papermill sees that the kernel is gone.
    """
    os.setsid()  # a kernel that Jupyter starts has its own session, too
    with (run_folder / "alive").open("w"):
        import pandas
        from ipykernel.kernelapp import IPKernelApp

        # Pandas must compute the same results whatever else is installed. The options are set only
        # here, because in JupyterLab the user's own options apply.
        pandas.set_option("compute.use_bottleneck", False, "compute.use_numexpr", False)
        (connection,) = map(str, run_folder.glob("*.json"))
        options = f"--IPKernelApp.parent_handle={os.getppid()} --HistoryManager.hist_file=:memory: "
        # Level ERROR suppresses the warning that messages to the kernel are not encrypted. Only
        # papermill sends messages here, so they need no encryption.
        options += "--IPKernelApp.log_level=ERROR"
        IPKernelApp.launch_instance(["-f", connection, *options.split()])


def end_with_the_runner(runner: socket, run_folder: Path) -> None:
    """Wait for the runner to end. Then end all descendants of this process, remove the run's folder
    ``run_folder``, and exit.
    """
    runner.recv(1)  # the runner sends nothing, so this returns when its socket closes
    end_children()
    shutil.rmtree(run_folder, ignore_errors=True)
    os._exit(1)  # sys.exit would end only this thread; papermill runs in the main thread


def run(runner: socket, run_folder: Path) -> None:
    """Execute one notebook. The file ``request``, which the runner wrote to ``run_folder``, has the
    notebook's path, its parameters and its environment. Write the notebook's failure, or null, to
    the file ``failure`` in the same folder. If the kernel dies, write no file.
    """
    notebook, copy, parameters, processors, environment = json.loads(
        (run_folder / "request").read_text()
    )
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # so that Python looks up TMPDIR in the new environment
    if processors:
        os.sched_setaffinity(0, processors)
    if not (kernel := os.fork()):
        runner.close()
        os.chdir(Path(notebook).parent)
        become_kernel(run_folder)
        return
    threading.Thread(target=end_with_the_runner, args=[runner, run_folder], daemon=True).start()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        failure = execute(Path(notebook), Path(copy), parameters)
    except Exception as error:
        name = type(error).__name__
        if name == "DeadKernelError":
            raise
        failure = Failure(0, "", name, str(error), "")
    finally:
        os.kill(kernel, signal.SIGKILL)  # the kernel may still wait for its command
        os.waitpid(kernel, 0)
    (run_folder / "failure").write_text(json.dumps(failure), "utf-8")


def main() -> None:
    """Import the modules that the arguments name. Then run each notebook that the runner requests,
    in a separate process. A request consists of the path of the run's folder and two file
    descriptors: a socket and the log.
    """
    # Python's own threshold (700) means that imports and tables are searched for garbage so often
    # that it takes a tenth of the processor time.
    gc.set_threshold(50_000)
    for module in sys.argv[1:]:
        import_module(module)
    if sys.argv[1:]:
        # The record is read now, so that the notebooks find it in memory. An error in a damaged
        # record is ignored here, because each notebook that reads the record raises it again.
        with suppress(UserError):
            record.rows("completions", [""])
            record.Audit.sample("completions")
    missing = UNUSED - sys.modules.keys()
    sys.modules.update(dict.fromkeys(missing))  # type: ignore[arg-type]  # None refuses imports
    import_module("papermill")
    import_module("ipykernel.debugger")
    # compiles the schema of notebooks, once for all processes
    import_module("nbformat.validator").get_validator(4)
    for name in missing:
        del sys.modules[name]
    gc.freeze()  # otherwise every kernel would search all imported modules for garbage
    requests = socket(fileno=os.dup(0))
    while (request := recv_fds(requests, 4096, 2))[0]:
        run_folder, (runner, log), *_ = request
        if not os.fork():
            # standard input is empty, and all output goes to the log
            for place, given in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
                os.dup2(given, place)
            run(socket(fileno=runner), Path(os.fsdecode(run_folder)))
            end()
        os.close(runner)
        os.close(log)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    end()


def end() -> NoReturn:
    """End this process at once. An ordinary exit would free all objects one by one, and thereby
    copy the memory that the process shares with its parent.
    """
    atexit._run_exitfuncs()
    os._exit(0)


if __name__ == "__main__":
    main()
