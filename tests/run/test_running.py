"""Real notebooks: what they leave behind, how they fail, in which order they run, what need not
run again.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from toy_model import ask, many_prompts

from lookuplab.errors import UserError
from lookuplab.results.verify import read_answers
from lookuplab.run import runner
from lookuplab.run.notebooks import load_profile, plan, read


def asks(count, model="ToyModel()"):
    """A cell in which a model answers so many prompts."""
    return f"""\
import sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "models")!r})
from toy_model import ToyModel, many_prompts
from lookuplab.models import Decoding, complete
answers = complete({model}, many_prompts({count}), Decoding())"""


def test_a_run_leaves_the_executed_copy_numbers_and_provenance(kit, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    kit.notebook(
        "counts",
        "import os, pandas\n"
        "print(os.environ['OMP_NUM_THREADS'], pandas.get_option('compute.use_numexpr'))",
        kit.saves,
        "import matplotlib.pyplot as plt\nfigure, _ = plt.subplots()\nplt.close()\nfigure",
    )
    kit.said("reproduce -j 1")
    # whatever the machine has, and -j says; and pandas computes by itself
    assert kit.output("counts") == "1 False\n"
    copy = nbformat.read(kit.root / "runs/mini/demo/counts.ipynb", as_version=4)
    nbformat.validate(copy)
    assert len(copy.cells[-1].outputs[0].data["image/png"]) > 1000
    assert (kit.root / "figures/mini/demo/counts.csv").read_text().splitlines() == [
        "paper,artifact,model,condition,metric,value,ci_low,ci_high,n,clusters,paper_value",
        "demo,counts,m,all,product,1.5,,,3,,",
    ]
    record = json.loads((kit.root / "figures/mini/demo/counts.json").read_text())
    assert record["parameters"] == {"profile": "mini", "tasks": 3, "rate": 0.5, "names": ["a"]}
    assert record["threads"] == 1


def test_a_failing_notebook_tells_cell_and_error_and_only_bad_input_is_exit_code_2(kit):
    kit.notebook("breaks", "fine = 1", "before = 2\nfine / 0")
    kit.notebook("dies", "import os; os.kill(os.getpid(), 9)")
    kit.notebook("works", "print('here')")
    asks = "from lookuplab.errors import UserError\nraise UserError('start it')"
    kit.notebook("asks", asks)
    said = kit.said("reproduce -j 2", code=1)
    assert "demo/breaks: In [4]: ZeroDivisionError: division by zero" in said
    assert "    fine / 0" in said
    assert "demo/dies: ProcessDied: the notebook's process died" in said
    assert "1 of 4 notebooks ran" in said and kit.output("works") == "here\n"
    bad_input = kit.said("run asks", code=2)
    assert "error: demo/asks: start it" in bad_input and "Traceback" not in bad_input


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("[Errno 28] No space left on device", "cannot use the disk: No space left on device"),
        ("[Errno 20] Not a directory: '/dev/null/x'", "cannot use /dev/null/x: Not a directory"),
        ("I/O error (os error 28)", "cannot use the disk: No space left on device"),
        ("[Errno 2] No such file: 'x'", "[Errno 2] No such file: 'x'"),  # may be a bug
    ],
)
def test_a_full_disk_or_an_unusable_path_in_a_cell_is_one_line(error, said):
    plain = runner._plain(runner.Failure(3, "a line", "OSError", error, "a traceback"))
    assert plain.evalue.startswith(said)
    assert (plain.ename == "UserError") == said.startswith("cannot use")


def test_a_sweep_collects_every_number_beside_its_parameters_and_goes_on_where_it_was(kit):
    kit.notebook("counts", kit.saves)
    for said_first in ("2 of 2 notebooks ran", "2 of 2 notebooks are up to date"):
        said = kit.said("sweep counts -p tasks=2,4 -p rate=1 -j 2")
        assert said_first in said
        (table,) = (kit.root / "runs/sweeps").rglob("sweep.csv")
        lines = table.read_text().splitlines()
        assert lines[0].startswith("paper,artifact,model,condition,metric,value,")
        assert lines[1:] == [
            'demo,counts,m,"all, tasks=2",product,2,,,2,,',
            'demo,counts,m,"all, tasks=4",product,4,,,4,,',
        ]


def test_a_relative_store_is_one_file_where_the_command_is_typed(kit, monkeypatch):
    monkeypatch.chdir(kit.root)
    monkeypatch.setenv("PWD", str(kit.root))
    monkeypatch.setenv("LOOKUPLAB_STORE", "here.sqlite")
    given = runner.environment(plan(read(kit.notebook("x")), load_profile("mini")), 1)
    assert given["LOOKUPLAB_STORE"] == str(kit.root / "here.sqlite")


# Order


def test_what_runs_on_demand_is_left_out_if_no_paper_is_named(kit):
    for name in ("any", "manual"):
        kit.notebook(name, "pass")
    (kit.root / "notebooks/order.yaml").write_text("manual: [demo/manual]")
    said = kit.said("reproduce --dry-run"), kit.said("reproduce demo --dry-run")
    assert ["demo/manual" in one for one in said] == [False, True]


def test_what_fills_stores_runs_before_the_others_and_alone_means_alone(kit):
    log = str(kit.root / "log")
    sleep = "import time\ntime.sleep(1)"
    for name in ("b", "first", "speed", "tools"):
        note = f"open({log!r}, 'a').write('{{}}{name} ')"
        kit.notebook(name, note.format("+"), sleep, note.format("-"))
    (kit.root / "notebooks/order.yaml").write_text(
        "first: [demo/first]\nalone: [demo/speed, demo/tools]"
    )
    kit.said("reproduce demo -j 4")
    begun = "+first -first +b -b +speed -speed +tools -tools "
    assert (kit.root / "log").read_text() == begun


def test_what_runs_is_shown_with_the_last_line_of_its_log(kit):
    running, ended, waiting = (
        plan(read(kit.notebook(name)), load_profile("mini")) for name in "abc"
    )
    for job in running, ended:
        job.beside(".log").parent.mkdir(parents=True, exist_ok=True)
        job.beside(".log").write_text("Executing\nmini-x: 3 of 5 answers\n\n")
    shown = runner._under_way([running, ended, waiting], {id(ended)}, 0)
    assert [*shown] == ["demo/a: mini-x: 3 of 5 answers"]
    assert not [*runner._under_way([running], {}, time.time() + 9)]  # of an earlier run


# What need not run again


def state(kit):
    return kit.said("status").splitlines()[0].removeprefix("demo/counts").removesuffix("counts")


def test_what_is_up_to_date_is_not_run_again_and_anything_that_changed_says_so(kit):
    kit.notebook("counts", "1 / 0")
    kit.said("reproduce", code=1)
    assert state(kit).strip() == "not run here"
    path = kit.notebook("counts", "print('ran')", kit.saves)
    kit.said("reproduce")
    said = kit.said("reproduce")
    assert "1 of 1 notebooks are up to date" in said and "0 of 0 notebooks ran" in said
    (kit.root / "data").mkdir()
    data, table = kit.root / "data/tasks.txt", kit.root / "figures/mini/demo/counts.csv"
    for file, changed in ((data, "1"), (table, "1.6"), (path, path.read_text() + " ")):
        before = file.read_text() if file.exists() else None
        file.write_text(changed)
        assert state(kit).strip() == "out of date"
        file.unlink() if before is None else file.write_text(before)
        assert state(kit).strip() == "up to date"


def test_the_answers_behind_the_figures_are_the_same_bytes_and_those_of_other_papers_stay(kit):
    kit.notebook("one", asks(2))
    kit.notebook("two", asks(1), paper="other")
    kit.notebook("speed", asks(9), paper="performance")
    (kit.root / "notebooks/order.yaml").write_text("manual: [performance/speed]")
    file = kit.root / "figures/mini/answers.csv.gz"
    kit.said("reproduce")
    first = file.read_bytes()
    rows = read_answers(file)
    asked = {("demo/one", "task/0"), ("demo/one", "task/1"), ("other/two", "task/0")}
    assert set(zip(rows.notebook, rows.prompt, strict=True)) == asked
    for paper, said in ("demo", "2 found in the store, 0 made"), ("performance", "7 made anew"):
        assert said in kit.said(f"reproduce {paper} --again")
        assert file.read_bytes() == first, "what is in the store, or ran on demand, changes nothing"


# Ends


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_notebooks_and_what_they_started_end_with_the_runner(kit, how, code):
    sleeps = "import os, subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\n"
    for name in ("a", "b"):
        file = str(kit.root / name)
        pids = f"open({file!r}, 'w').write(f'{{os.getpid()}} {{child.pid}} ')\ntime.sleep(600)"
        kit.notebook(name, sleeps + pids)
    process = subprocess.Popen(
        [sys.executable, "-m", "lookuplab", "reproduce", "-j", "2"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        below = []
        for name in ("a", "b"):
            while not (kit.root / name).exists() or (kit.root / name).read_text().count(" ") < 2:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.1)
            below += map(int, (kit.root / name).read_text().split())
        process.send_signal(how)
        assert process.wait(60) == code, process.stderr.read()
        deadline = time.monotonic() + 60
        for pid in below:
            while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < deadline, "a process still runs"
                time.sleep(0.1)
    finally:
        process.kill()


# One launch of several processes


def launch(monkeypatch, rank="", count="", here="", gpus=""):
    names = "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "CUDA_VISIBLE_DEVICES"
    for name, value in zip(names, (rank, count, here, gpus), strict=True):
        monkeypatch.delenv(name, raising=False)
        if value:
            monkeypatch.setenv(name, value)


def test_a_launched_notebook_gets_its_share_of_prompts_and_gpus_and_nothing_of_the_launcher(
    kit, monkeypatch
):
    job = plan(read(kit.notebook("x")), load_profile("mini"))
    launch(monkeypatch, "1", "2", "2", "0,1,2,3")
    monkeypatch.setenv("MASTER_PORT", "1")
    found = runner.environment(job, 1)
    assert (found["LOOKUPLAB_SHARE"], found["CUDA_VISIBLE_DEVICES"]) == ("1/2", "1,3")
    assert not {"RANK", "WORLD_SIZE", "MASTER_PORT"} & found.keys()
    for launched, said in (
        (("1", "4", "2"), "must run on one machine"),
        (("2", "3", "3", "0,1"), "3 processes on 2 GPUs"),
    ):
        launch(monkeypatch, *launched)
        with pytest.raises(UserError, match=said):
            runner.environment(job, 1)
    launch(monkeypatch, count="4")  # a scheduler's variable is no launch
    assert runner.rank_and_count() == (0, 1)


def test_launched_processes_share_the_work_go_in_step_and_the_first_alone_writes_figures(
    kit, monkeypatch
):
    log = str(kit.root / "log")
    model = f"ToyModel({log!r} + os.environ.get('LOOKUPLAB_SHARE', '')[:1])"
    shows = f"import os\n{asks(6, model)}\nprint([one.text for one in answers])"
    kit.notebook("asks", shows, kit.saves)
    options = "--multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no"
    command = f"{options} --dynamo_backend no -m lookuplab reproduce demo"
    call = [sys.executable, "-m", "accelerate.commands.launch", *command.split()]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers, _ = ask(many_prompts(6), store=False)
    assert kit.output("asks").endswith(f"{[one.text for one in answers]}\n")
    generated = [(kit.root / f"log{number}").read_text().splitlines() for number in (0, 1)]
    assert all(generated)
    assert sorted([*generated[0], *generated[1]]) == [f"task/{n}/0" for n in range(6)]
    assert (kit.root / "figures/mini/demo/counts.csv").is_file()
    assert len(read_answers(kit.root / "figures/mini/answers.csv.gz")) == 6
    kit.notebook("counts", kit.saves)
    for rank in "1", "", "1":  # the last one finds the first one's numbers
        launch(monkeypatch, rank, rank and "2", rank and "2")
        kit.said("sweep counts -p tasks=3")
        tables = [*(kit.root / "runs/sweeps").rglob("sweep.csv")]
        assert len(tables) == (not rank)
        for table in tables:
            table.unlink()
    others = [path.name for path in (kit.root / "runs/processes/1").rglob("*")]
    assert {"asks.ipynb", "counts.ipynb", "counts.csv"} <= {*others}
    assert "answers.csv.gz" not in others


def test_a_failure_in_a_launched_process_ends_its_command(kit, monkeypatch):
    kit.notebook("breaks", "1 / 0")
    kit.notebook("works", "print('here')")
    launch(monkeypatch, "1", "2", "2")
    assert "demo/works: not run: another notebook failed" in kit.said("reproduce -j 2", 1)
    assert "in one process" in kit.said("reproduce --cold", 2)
