"""Provides fixtures and helpers for tests in several folders."""

import atexit
import gc
import importlib
import json
import logging
import math
import os
import shlex
import subprocess
import sys
import warnings
import zipfile
from contextlib import nullcontext
from socket import MSG_PEEK, SOCK_SEQPACKET, socketpair

import pytest
from doors import call
from hypothesis import HealthCheck, settings
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from lookuplab import paths
from lookuplab.models import Completion
from lookuplab.run import cluster, execute, runner
from lookuplab.run.notebooks import find, load_profile, plan
from lookuplab.work import free_memory, processors

# There is no deadline, because a busy machine would exceed any deadline. All examples of a test may
# share its fixtures, because each example writes its files again.
LENIENT = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
settings.register_profile("quick", max_examples=40, **LENIENT)
settings.register_profile("deep", max_examples=20_000, **LENIENT)  # `make fuzz`
settings.load_profile("quick")
PARAMETERS = """\
profile = "mini"  # which world
tasks = 3  # how many
rate = 0.5  # a share
names = ["a"]  # which
"""
SAVES = """\
import pandas as pd
from lookuplab.results.artifact import Artifact
row = dict(model="m", condition="all", metric="product", value=tasks * rate, n=tasks)
artifact = Artifact("demo", "counts", profile)
artifact.save(pd.DataFrame([row]))"""


# each notebook imports the modules in these folders again
OWN = tuple(str(paths.ROOT / name) for name in ("lib", "notebooks", "data", "docs", "tests"))
FORK_SERVER = pytest.StashKey()  # the number of the process that forks notebooks, its socket


def pytest_addoption(parser):
    parser.addoption("--flips", type=int, default=3, help="bits in tests/models/test_flips.py")
    parser.addoption("--slurm", action="store_true", help="start a SLURM for tests/cluster")


@pytest.hookimpl(optionalhook=True)  # unknown where pytest-xdist is not installed
def pytest_xdist_auto_num_workers():
    """Let three processes share two cores, because many tests wait for other processes. Each needs
    up to three gigabytes of memory.
    """
    return max(1, min(math.ceil(processors() * 1.5), free_memory() // 3_000_000_000))


@pytest.fixture(scope="module", autouse=True)
def frozen():
    """Exempt all objects that exist before a module's tests from garbage collection. Otherwise the
    collection before a local model loads would take a second each time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """Return a folder that all test processes share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def run_python():
    """Return a function that runs code in a new process, so that the code cannot change this
    process. The function returns what the code prints.
    """

    def run(code, *arguments, **options):
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.check_output(command, text=True, **options)

    return run


@pytest.fixture
def own_store(tmp_path, monkeypatch):
    """Let a test store all answers and judgements in its own folder. Return this folder."""
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "store" / "completions.sqlite"))
    return tmp_path


@pytest.fixture
def score(own_store):
    """Return a function that runs `lookuplab score` on a file with given lines. A line is an
    object, or a text that is written unchanged. Without an output file, the command prints the
    judgements and nothing else; they are the result's ``rows``.
    """
    file = own_store / "with space.jsonl"

    def run(what, lines, *options):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        paths.write_lines(file, texts)
        result = call("score", what, file, *options)
        if "-o" not in options:
            result.rows = [*map(json.loads, result.stdout.splitlines())]
        return result

    return run


@pytest.fixture(scope="session")
def write_wheel():
    """Return a function that writes a wheel with given files into a folder and returns the wheel's
    hash.
    """

    def write(folder, name, version, files):
        wheel = folder / f"{name}-{version}-py3-none-any.whl"
        about = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        files |= {f"{about}/METADATA": metadata, f"{about}/WHEEL": tag, f"{about}/RECORD": ""}
        with zipfile.ZipFile(wheel, "w") as content:
            for place, text in files.items():
                content.writestr(place, text)
        return paths.file_hash(wheel)

    return write


@pytest.fixture
def index(tmp_path, monkeypatch, write_wheel):
    """Set up a package index that needs no network. Return a function that adds a wheel of version
    1.0 with given files to the index and returns the wheel's hash.
    """
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder := paths.make_folder(tmp_path / "wheels")))
    return lambda name, files: write_wheel(folder, name, "1.0", files)


@pytest.fixture(scope="session")
def commit():
    """Return a function that makes a folder a git repository and commits given files in it."""

    def run(folder, files="."):
        user = "-c user.name=n -c user.email=n"
        for command in "init -q", f"add {files}", f"{user} commit -qm m":
            subprocess.run(["git", *command.split()], cwd=folder, check=True)

    return run


@pytest.fixture(autouse=True)
def environment():
    """Fail a test that leaves a variable of the kit or the working directory changed, because the
    next test would see it.
    """

    def surroundings():
        own = {name: value for name, value in os.environ.items() if name.startswith("LOOKUPLAB")}
        return own, os.getcwd()

    before = surroundings()
    yield
    assert surroundings() == before


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Return an IPython shell that runs code in this process as a kernel does. The shell writes
    nothing to the user's home.
    """
    # the shell replaces the module __main__, and monkeypatch restores it
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    quiet = {"HistoryManager": {"enabled": False}, "ProfileDir": {"location": str(tmp_path)}}
    yield InteractiveShell.instance(config=Config(quiet))
    InteractiveShell.clear_instance()


@pytest.fixture
def executed(shell, tmp_path, monkeypatch):
    """Return a function that executes the cells of a notebook in this process. This is faster than
    a kernel, because the modules are already imported. ``given`` are parameters of the notebook.
    Figures are written to ``tmp_path``, and ``store`` is the folder of the stored answers.
    """

    def run(name, profile="smoke", store=tmp_path, **given):
        # imported here, because the process that starts the test processes never needs it
        import nbformat

        notebook = find(name)
        job = plan(notebook, load_profile(profile), given)
        monkeypatch.setenv("LOOKUPLAB_FIGURES", str(tmp_path))
        monkeypatch.setenv("LOOKUPLAB_STORE", str(store / "completions.sqlite"))
        monkeypatch.chdir(tmp_path)
        injected = "\n".join(f"{name} = {value!r}" for name, value in job.parameters.items())
        for cell in nbformat.read(notebook.path, as_version=4).cells:
            if cell.cell_type == "code":
                is_tagged = "parameters" in cell.metadata.get("tags", ())
                for code in [cell.source, *([f"# Parameters\n{injected}"] if is_tagged else [])]:
                    shell.run_cell(code, store_history=True).raise_error()

    return run


class ScriptedModel:
    """Answers each prompt with ``answer(prompt, sample)``, a text or a completion. ``asked`` lists
    the prompts in the order of the requests.
    """

    def __init__(self, answer, chat=False, tokenizer=None):
        self.name = "scripted"
        self.identity = {"name": "scripted"}
        self.answer = answer
        self.chat = chat
        self.tokenizer = tokenizer
        self.asked = []

    def generate(self, requests, _):
        for prompt, sample in requests:
            self.asked.append(prompt)
            made = self.answer(prompt, sample)
            if isinstance(made, str):
                made = Completion(prompt.id, sample, made, (), (), None, "eos", 1)
            yield [made]


@pytest.fixture
def scripted():
    return ScriptedModel


def start_notebooks(requests):
    """Wait for the first request. Then turn this process into the one from which notebooks are
    forked.
    """
    if not requests.recv(1, MSG_PEEK):
        return
    os.dup2(requests.fileno(), 0)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # not what pytest captures
    logging.root.handlers.clear()
    del sys.argv[1:]
    atexit._clear()
    # pytest turns these warnings into errors; other processes ignore them
    warnings.simplefilter("ignore", DeprecationWarning)
    backend = {"backend": "module://matplotlib_inline.backend_inline"}
    importlib.import_module("matplotlib").rcParams.update(backend)
    for name in runner.IMPORTED.split():
        importlib.import_module(name)
    # each notebook imports our own modules again, because each test has a checkout of its own
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None) or ""
        if name.startswith("lookuplab") or file.startswith(OWN):
            del sys.modules[name]
    execute.main()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """Fork the process from which notebooks are forked. No test has changed this process yet, but
    the slow imports are done, which take longer than the notebooks of most tests.
    """
    if any("fork_server" in item.fixturenames for item in session.items):
        ours, theirs = socketpair(type=SOCK_SEQPACKET)
        if not (process := os.fork()):
            try:
                ours.close()
                start_notebooks(theirs)
            finally:
                os._exit(1)
        theirs.close()
        session.config.stash[FORK_SERVER] = process, ours


@pytest.fixture(scope="session")
def fork_server(request):
    """Return a function to use in place of ``runner.fork_server``. All tests of this process share
    one process from which notebooks are forked.
    """
    process, requests = request.config.stash[FORK_SERVER]
    with requests:
        yield lambda *_: nullcontext(requests)
    os.waitpid(process, 0)


class Begun(subprocess.Popen):
    """A process that is killed at the end of its ``with`` block, so that a failed test does not
    wait for the process.
    """

    def __exit__(self, *error):
        self.kill()
        super().__exit__(*error)


class Kit:
    """A checkout of the kit. ``notebook`` adds a notebook to it, and ``call`` runs the command line
    in it.
    """

    saves = SAVES  # a cell that saves an artifact

    def __init__(self, root):
        self.root = root

    def notebook(self, name, *cells, parameters=PARAMETERS, paper="demo"):
        import nbformat

        head = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
        code = [nbformat.v4.new_code_cell(cell) for cell in cells]
        cells = [nbformat.v4.new_markdown_cell("# A claim"), head, *code]
        path = self.root / "notebooks" / paper / f"{name}.ipynb"
        paths.make_folder(path.parent)
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return path

    def call(self, *arguments):
        """Return (exit code, everything that was printed)."""
        runner.surroundings.cache_clear()  # as if each command ran in a process of its own
        result = call(*arguments)
        return result.exit_code, result.output

    def said(self, command, code=0):
        """Return everything that a command printed. The command must end with this exit code."""
        found, said = self.call(*shlex.split(command))
        assert found == code, said
        return said

    def refused(self, command):
        """Return the line with which a command refuses what the user typed."""
        said = self.said(command, 2)
        assert said.count("\n") == 1, said
        return said

    def begin(self, command):
        """Start a command in a process of its own."""
        call = [sys.executable, "-m", "lookuplab", *command.split()]
        return Begun(call, stderr=subprocess.PIPE, text=True)

    def output(self, name, profile="mini", paper="demo"):
        """Return what the cells of the executed copy printed."""
        import nbformat

        copy = nbformat.read(self.root / "runs" / profile / paper / f"{name}.ipynb", as_version=4)
        outputs = [output for cell in copy.cells for output in cell.get("outputs", ())]
        return "".join(output.get("text", "") for output in outputs)


@pytest.fixture(scope="session")
def checkout(fork_server):
    """Return a function that makes an empty checkout in a folder whose name has a space. This
    fixture serves fixtures that several tests share; a single test uses ``kit``.
    """

    def make(folder, patch):
        (root := folder / "my kit").mkdir()
        patch.setattr(runner, "fork_server", fork_server)
        (root / "CITATION.cff").symlink_to(paths.ROOT / "CITATION.cff")  # names the papers
        for name in "NOTEBOOKS DATA MINI DOWNLOADS FIGURES RUNS COMPLETIONS ROOT".split():
            patch.setattr(paths, name, root / getattr(paths, name).relative_to(paths.ROOT))
        patch.setenv("LOOKUPLAB_HOME", str(root))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("COLUMNS", "300")
        (root / "notebooks").mkdir()
        return Kit(root)

    return make


@pytest.fixture
def kit(tmp_path, monkeypatch, checkout):
    """Make a checkout for one test."""
    cluster.installation.cache_clear()  # the cached one names the checkout
    yield checkout(tmp_path, monkeypatch)
    cluster.installation.cache_clear()
