"""Tests real notebooks: what they leave behind, how they fail, in which order they run, and what
need not run again.
"""

import json
import os
import re
import resource
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import psutil
import pytest
from doors import python, refused
from toy_model import ask, begun, many_prompts
from waiting import is_at_work, until

from lookuplab import paths
from lookuplab.results.verify import read_answers
from lookuplab.run import runner
from lookuplab.run.notebooks import find, load_profile, plan, read
from lookuplab.run.runner import fork_server
from lookuplab.work import hold_lock
from lookuplab_notebooks.toolgen.repositories import main


def asks(count, model="ToyModel()"):
    """Return a cell in which a model answers ``count`` prompts."""
    return f"""\
import sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "models")!r})
from toy_model import ToyModel, many_prompts
from lookuplab.models import Decoding, complete
answers = complete({model}, many_prompts({count}), Decoding())"""


def job_of(notebook):
    return plan(read(notebook), load_profile("mini"))


@pytest.fixture(scope="module")
def ran(tmp_path_factory, checkout):
    """Return a checkout in which one notebook has run; ``told`` is what the command printed. The
    environment allows three threads, and another program has registered a kernel under the name
    ``python3``.
    """
    with pytest.MonkeyPatch.context() as patch:
        kit = checkout(tmp_path_factory.mktemp("ran"), patch)
        foreign = {"argv": ["/bin/false"], "display_name": "Other", "language": "python"}
        paths.write_text(kit.root / "share/kernels/python3/kernel.json", json.dumps(foreign))
        patch.setenv("JUPYTER_PATH", str(kit.root / "share"))
        patch.setenv("OMP_NUM_THREADS", "3")
        kit.notebook(
            "counts",
            "import os, sys, pandas\n"
            "print(os.environ['OMP_NUM_THREADS'], pandas.get_option('compute.use_numexpr'))\n"
            "print(sys.executable)",
            *["print('warning: unprotected', file=sys.stderr, flush=True)"] * 2,
            kit.saves,
            'artifact.tell(f\'It is {artifact.quote("all", "product")}.\')',
            "import matplotlib.pyplot as plt\nfigure, _ = plt.subplots()\nplt.close()\nfigure",
        )
        kit.told = kit.said("run counts")
        kit.printed = kit.output("counts").splitlines()
    return kit


def test_a_run_leaves_the_executed_copy_numbers_and_provenance(ran):
    # the environment allows three threads, but the notebook uses one; it does not use numexpr
    assert ran.printed[0] == "1 False"
    assert "written: figures/mini/demo/counts.csv" in ran.printed
    copy = nbformat.read(ran.root / "runs/mini/demo/counts.ipynb", as_version=4)
    nbformat.validate(copy)
    assert len(copy.cells[-1].outputs[0].data["image/png"]) > 1000
    assert (ran.root / "figures/mini/demo/counts.csv").read_text().splitlines() == [
        "paper,artifact,model,condition,metric,value,ci_low,ci_high,n,clusters,paper_value",
        "demo,counts,m,all,product,1.5,,,3,,",
    ]
    record = json.loads((ran.root / "figures/mini/demo/counts.json").read_text())
    assert record["parameters"] == {"profile": "mini", "tasks": 3, "rate": 0.5, "names": ["a"]}
    assert record["threads"] == 1


def test_a_run_ends_with_its_table_and_its_sentence(ran):
    said = ran.told
    assert re.search(r"model condition +product\n +m +all +1.5\n", said), said
    assert said.index("1.5\n") < said.index("It is 1.5") < said.index("executed copy: ")


def test_a_warning_in_a_cell_is_said_on_the_terminal_once(ran):
    assert ran.told.count("demo/counts: warning: unprotected") == 1


def test_a_kernel_that_others_have_registered_is_never_taken(ran):
    assert ran.printed[1] == sys.executable


def test_a_failing_notebook_tells_cell_and_error_and_only_bad_input_is_exit_code_2(kit):
    kit.notebook("breaks", "fine = 1", "before = 2\nfine / 0")
    kit.notebook("dies", "import os; os.kill(os.getpid(), 9)")
    kit.notebook("works", "print('here')")
    said = kit.said("reproduce -j 2", code=1)
    assert "demo/breaks: In [4]: ZeroDivisionError: division by zero" in said
    assert "    fine / 0" in said
    assert "demo/dies: ProcessDied: the notebook's process died" in said
    assert "1 of 3 notebooks ran" in said and kit.output("works") == "here\n"
    (table,) = re.findall(r"^ seconds +start +drawing +found +made +notebook\n(.*)", said, re.M)
    assert re.search(r"^ +\d+\.\d +\d+\.\d +0\.0 +0 +0  \S+/works$", table), "what failed has none"
    kit.notebook("asks", "from lookuplab.errors import UserError\nraise UserError('start it')")
    bad_input = kit.said("run asks", code=2)
    assert "error: demo/asks: start it" in bad_input and "Traceback" not in bad_input


DRAWN = "import matplotlib.pyplot as plt\nartifact.draw(plt.subplots()[0])"


def test_on_a_full_disk_the_error_is_one_line_and_every_file_is_whole_or_absent(kit, monkeypatch):
    monkeypatch.setattr(runner, "fork_server", fork_server)  # its processes have the limit below
    kit.notebook("counts", asks(40), kit.saves, DRAWN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The numbers are the size of the largest file that fits on the disk, in KB. At 2 KB, not even
    # the answers fit. At 24 KB, the answers fit, but no picture does.
    for size in 2, 24:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size << 10, hard))
        try:
            said = kit.said("run counts", 2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert len(re.findall("error: .*(?:File too large|full)", said)) == 1
        assert "Trace" not in said
    figures = kit.root / "figures" / "mini" / "demo"
    left = {file.name: file.read_bytes() for file in figures.glob("*")}
    assert not [name for name in left if "partial" in name]
    # the failed run does not count as up to date
    assert "1 of 1 notebooks ran" in kit.said("reproduce demo")
    assert left.keys() <= {"counts.csv", "counts.json", "counts.svg", "counts.png"}
    for name in left.keys() - {"counts.json"}:  # it contains the time of the run
        assert (figures / name).read_bytes() == left[name]


def test_a_sweep_collects_every_number_beside_its_parameters_and_goes_on_where_it_was(kit):
    kit.notebook("counts", kit.saves)
    for said_first in ("2 of 2 notebooks ran", "2 of 2 notebooks are up to date"):
        said = kit.said("sweep counts -p tasks=[2,4] -p rate=1 -j 2")
        assert said_first in said
        (table,) = (kit.root / "runs/sweeps").rglob("sweep.csv")
        lines = table.read_text().splitlines()
        assert lines[0].startswith("paper,artifact,model,condition,metric,value,")
        assert lines[1:] == [
            'demo,counts,m,"all, tasks=2",product,2,,,2,,',
            'demo,counts,m,"all, tasks=4",product,4,,,4,,',
        ]
    # a run that fails now keeps none of the numbers of its earlier run
    kit.notebook("counts", f"assert tasks == 2\n{kit.saves}")
    kit.said("sweep counts -p tasks=[2,4] -p rate=1 -j 2", code=1)
    assert table.read_text().splitlines() == lines[:2]


def test_a_relative_store_is_one_file_where_the_command_is_typed(kit, monkeypatch):
    monkeypatch.chdir(kit.root)
    monkeypatch.setenv("PWD", str(kit.root))
    monkeypatch.setenv("LOOKUPLAB_STORE", "here.sqlite")
    given = runner.environment(job_of(kit.notebook("x")), 1, kit.root)
    assert given["LOOKUPLAB_STORE"] == str(kit.root / "here.sqlite")


def test_a_list_names_each_notebook_and_its_question(kit):
    kit.notebook("counts")
    assert kit.said("list").split() == ["demo/counts", "A", "claim"]
    assert "the notebook is 'other'; it must be" in kit.refused("list other")


# Order


def test_what_runs_on_demand_is_left_out_if_no_paper_is_named(kit):
    for name in ("any", "manual"):
        kit.notebook(name, "pass")
    (kit.root / "notebooks/order.yaml").write_text("manual: [demo/manual]")
    said = kit.said("reproduce --dry-run"), kit.said("reproduce demo --dry-run")
    assert ["demo/manual" in one for one in said] == [False, True]


def test_every_notebook_runs_in_the_profile_that_its_parameters_name(kit):
    kit.notebook("mine", "pass")
    kit.notebook("theirs", "pass", parameters='profile = "published"\n')
    said = kit.said("reproduce --dry-run")
    assert "demo/mine -> figures/mini/" in said and "demo/theirs -> figures/published/" in said
    assert "theirs" not in kit.said("reproduce --dry-run --profile mini")


def test_judgements_of_published_answers_never_enter_the_stores_of_a_cold_run(kit):
    log = kit.root / "log"
    write = f"import os; print(os.environ['LOOKUPLAB_STORE'], file=open({str(log)!r}, 'a'))"
    for home in "mini", "published":
        kit.notebook(f"of_{home}", write, parameters=f'profile = "{home}"\n')
    kit.said("reproduce --cold")
    assert ["/cold/" in store for store in sorted(log.read_text().splitlines())] == [True, False]


def test_what_fills_stores_runs_before_the_others_and_alone_means_alone(kit):
    log = str(kit.root / "log")
    sleep = "import time\ntime.sleep(0.2)"
    for name in ("b", "first", "speed", "tools"):
        note = f"open({log!r}, 'a').write('{{}}{name} ')"
        kit.notebook(name, note.format("+"), sleep, note.format("-"))
    (kit.root / "notebooks/order.yaml").write_text(
        "first: [demo/first]\nalone: [demo/speed, demo/tools]"
    )
    kit.said("reproduce demo -j 4")
    begun = "+first -first +b -b +speed -speed +tools -tools "
    assert (kit.root / "log").read_text() == begun


def test_what_is_imported_once_for_many_leaves_each_kernel_its_own(kit, monkeypatch):
    monkeypatch.setattr(runner, "fork_server", fork_server)
    monkeypatch.setattr(runner, "MANY", 2)
    monkeypatch.setattr(runner, "IMPORTED", "colorsys wave")
    finds = (
        "import os, sys\nprint('colorsys' in sys.modules, 'own' in globals(), os.getcwd())\nown = 1"
    )
    for name in "ab":
        kit.notebook(name, finds, paper=name)
    kit.said("reproduce -j 1")
    for name in "ab":
        assert kit.output(name, paper=name) == f"True False {kit.root}/notebooks/{name}\n"


# Notebooks that are up to date


def is_current():
    runner.surroundings.cache_clear()  # as in a new command
    return runner.is_current(plan(find("counts"), load_profile("mini")))


def test_what_is_up_to_date_is_not_run_again_and_anything_that_changed_says_so(kit):
    kit.notebook("counts", "1 / 0")
    kit.said("reproduce", code=1)
    assert not is_current()
    path = kit.notebook("counts", "print('ran')", kit.saves)
    kit.said("reproduce")
    assert not (kit.root / "figures/mini/answers.csv.gz").exists(), "it has no answers"
    said = kit.said("reproduce")
    assert "1 of 1 notebooks are up to date" in said and "0 of 0 notebooks ran" in said
    (kit.root / "data").mkdir()
    data, table = kit.root / "data/tasks.txt", kit.root / "figures/mini/demo/counts.csv"
    for file, changed in ((data, "1"), (table, "1.6"), (path, path.read_text() + " ")):
        before = file.read_text() if file.exists() else None
        file.write_text(changed)
        assert not is_current()
        file.unlink() if before is None else file.write_text(before)
        assert is_current()


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
    for paper, said in ("demo", "2 found in the store, 0 new"), ("performance", "7 new"):
        assert said in kit.said(f"reproduce {paper} --again")
        assert file.read_bytes() == first, "what is in the store, or ran on demand, changes nothing"


# How a run ends


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_notebooks_and_what_they_started_end_with_the_runner(kit, how):
    """``test_an_interrupt_is_one_line_and_leaves_nothing`` also sends SIGINT and SIGUSR1."""
    sleeps = "import os, subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\n"
    for name in ("a", "b"):
        file = str(kit.root / name)
        pids = f"open({file!r}, 'w').write(f'{{os.getpid()}} {{child.pid}} ')\ntime.sleep(600)"
        kit.notebook(name, sleeps + pids)
    process = kit.begin("reproduce -j 2")
    try:
        below = []
        for name in ("a", "b"):
            file = kit.root / name
            until(lambda file=file: file.exists() and file.read_text().count(" ") == 2)
            below += map(psutil.Process, map(int, file.read_text().split()))
        process.send_signal(how)
        assert process.wait(60) in (128 + how, -how), process.stderr.read()
        until(lambda: not any(map(is_at_work, below)), 60)
    finally:
        process.kill()


# Several processes that share the work


SHARES = "RANK WORLD_SIZE LOCAL_WORLD_SIZE SLURM_PROCID SLURM_NTASKS SLURM_ARRAY_TASK_ID "
SHARES += "SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_STEP CUDA_VISIBLE_DEVICES"


def launch(monkeypatch, **values):
    for name in SHARES.split():
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def launched(rank, count):
    return {"RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}


PARTS = """\
(0, 1, True)
(2, 8, False) 3/8
(1, 2, False) RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2
(0, 2, True) RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2
(0, 1, True) WORLD_SIZE=4  # a scheduler's variable is no launch
(5, 8, False) SLURM_PROCID=5 SLURM_NTASKS=8
(0, 1, True) SLURM_PROCID=0 SLURM_NTASKS=1
(0, 1, True) SLURM_NTASKS=8  # an allocation in which nothing has begun
(3, 4, True) SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=1 \
SLURM_ARRAY_TASK_STEP=2
(1, 2, False) 2/2 RANK=0 WORLD_SIZE=3 LOCAL_WORLD_SIZE=3"""


@pytest.mark.parametrize("line", PARTS.splitlines())
def test_a_process_knows_its_part(monkeypatch, line):
    """Each ``line`` of PARTS has (the process's number, the number of processes, whether this
    process draws), and then the ``--shard`` or the environment variables from which they follow.
    """
    part, _, given = line.partition(")")
    words = shlex.split(given, comments=True)
    launch(monkeypatch, **dict(word.split("=") for word in words if "=" in word))
    shard = next((word for word in words if "/" in word), "")
    assert repr(runner.part_of(shard)[:3]) == f"{part})"


def test_a_launched_notebook_gets_its_share_of_everything_and_nothing_of_the_launcher(
    kit, monkeypatch
):
    launch(monkeypatch, **launched("1", "2"), CUDA_VISIBLE_DEVICES="0,1,2,3", MASTER_PORT="1")
    part = runner.part_of()
    job = job_of(kit.notebook("x"))
    found = runner.environment(job, 1, kit.root, part)
    assert found["LOOKUPLAB_SHARE"] == "1/2"
    assert runner.cards_of(part) == ["1", "3"]
    assert part.processors() == sorted(os.sched_getaffinity(0))[1::2]
    assert not {"RANK", "WORLD_SIZE", "MASTER_PORT"} & found.keys()
    launch(monkeypatch, RANK="1", WORLD_SIZE="4", LOCAL_WORLD_SIZE="2")
    with refused("must run on one machine"):
        runner.part_of()
    launch(monkeypatch, **launched("2", "3"), CUDA_VISIBLE_DEVICES="0,1")
    with refused("3 processes on 2 GPUs"):
        runner.cards_of(runner.part_of())


def test_notebooks_at_once_divide_the_cards_if_their_models_need_one(kit, monkeypatch):
    launch(monkeypatch, CUDA_VISIBLE_DEVICES="4,5,6")
    seen = kit.root / "seen"
    code = f"import os\nopen({str(seen)!r}, 'a').write(os.environ['CUDA_VISIBLE_DEVICES'] + ' ')"
    notebooks = [kit.notebook(name, code, parameters='models = ["mini-small"]\n') for name in "ab"]
    jobs = [*map(job_of, notebooks)]
    assert not runner.needs_card(jobs[0])
    jobs = [replace(job, parameters={"models": ["owner/model"]}) for job in jobs]
    assert all(map(runner.needs_card, jobs)) and runner.default_jobs(jobs) <= 3
    assert not any(ended.failure for _, ended in runner.run_jobs(jobs, 2))
    assert {*seen.read_text().split()} <= {"4,6", "5"}
    assert seen.read_text().count(" ") == 2


def test_processes_share_the_work_and_those_that_draw_alone_write_figures(kit, monkeypatch):
    log = str(kit.root / "log")
    model = f"ToyModel({log!r} + os.environ.get('LOOKUPLAB_SHARE', '')[:1])"
    shows = f"import os\n{asks(6, model)}\nprint([one.text for one in answers])"
    kit.notebook("asks", shows, kit.saves)
    options = "--multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no"
    command = f"-m accelerate.commands.launch {options} --dynamo_backend no"
    python(*command.split(), *"-m lookuplab reproduce demo".split())
    answers, _ = ask(many_prompts(6), store=False)
    assert f"{[one.text for one in answers]}\n" in kit.output("asks")
    generated = [line for log in kit.root.glob("log?") for line in log.read_text().splitlines()]
    assert {*generated} == {f"task/{n}/0" for n in range(6)}
    assert (kit.root / "figures/mini/demo/counts.csv").is_file()
    assert len(read_answers(kit.root / "figures/mini/answers.csv.gz")) == 6
    kit.notebook("counts", kit.saves)
    for shard in "--shard 2/2", "":
        launch(monkeypatch)
        kit.said(f"sweep counts -p tasks=3 {shard}")
        tables = [*(kit.root / "runs/sweeps").rglob("sweep.csv")]
        assert len(tables) == (not shard)
    others = [path.name for path in (kit.root / "runs/shards/1").rglob("*")]
    assert {"asks.ipynb", "counts.ipynb", "counts.csv"} <= {*others}
    assert "answers.csv.gz" not in others


def test_a_failing_notebook_of_a_shared_work_stops_no_other(kit, monkeypatch):
    kit.notebook("breaks", "1 / 0")
    kit.notebook("works", "print('here')")
    launch(monkeypatch, **launched("1", "2"))
    assert "1 of 2 notebooks ran" in kit.said("reproduce -j 2", 1)
    assert "need a single process" in kit.refused("reproduce --cold")


# Two commands at once


def test_a_second_run_of_a_notebook_is_refused_and_the_first_keeps_its_numbers(kit):
    runs, may_end = kit.root / "runs/it_runs", kit.root / "may_end"
    waits = f"from pathlib import Path\nimport time\nPath({str(runs)!r}).touch()\n"
    waits += f"while not Path({str(may_end)!r}).exists(): time.sleep(0.05)"
    kit.notebook("counts", asks("tasks"), waits, kit.saves)
    first = begun(kit.said, "run counts -p tasks=3")
    until(runs.exists)
    told = f"another lookuplab runs demo/counts: process {first.pid} on "
    assert told in kit.said("run counts -p tasks=4", 2)
    may_end.touch()
    first.join()
    assert first.exitcode == 0
    table = (kit.root / "runs/figures/mini/demo/counts.csv").read_text()
    assert "product,1.5,,,3" in table
    assert not [*kit.root.rglob("*.lock")]
    assert "3 found in the store, 1 new" in kit.said("run counts -p tasks=4")


def test_a_task_of_an_array_that_finds_another_at_work_fills_the_store_without_drawing(
    kit, monkeypatch
):
    job = job_of(kit.notebook("counts", kit.saves))
    with hold_lock(job.output, "runs it"):
        launch(monkeypatch, SLURM_ARRAY_TASK_ID="1", SLURM_ARRAY_TASK_COUNT="2")
        monkeypatch.setenv("SLURM_ARRAY_TASK_MIN", "0")
        assert "1 of 1 notebooks ran" in kit.said("run counts")
    assert not (kit.root / "figures").exists()
    assert (kit.root / "runs/shards/1/figures/mini/demo/counts.csv").is_file()


def test_the_command_that_a_dry_run_names_exists():
    steps = load_profile("paper").steps
    commands = re.findall(r"repositories\.py (\w+) (\w+)", " ".join(steps.values()))
    assert commands == [("clone", "test"), ("clone", "train")]
    assert main.name == "clone"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("[Errno 28] No space left on device", "cannot use the disk: No space left on device"),
        ("[Errno 20] Not a directory: '/dev/null/x'", "cannot use /dev/null/x: Not a directory"),
        ("I/O error (os error 28)", "cannot use the disk: No space left on device"),
        # a missing file may be a bug in the cell, so the error is shown unchanged
        ("[Errno 2] No such file: 'x'", "[Errno 2] No such file: 'x'"),
    ],
)
def test_a_full_disk_or_an_unusable_path_in_a_cell_is_one_line(error, said):
    plain = runner._as_user_error(runner.Failure(3, "a line", "OSError", error, "a traceback"))
    assert plain.evalue.startswith(said)
    assert (plain.ename == "UserError") == said.startswith("cannot use")
