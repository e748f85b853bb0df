"""Real notebooks under real papermill: what they leave behind, how they fail, how they are tried again."""

import json
import sys
from dataclasses import replace

import pytest

from lookuplab.runner import notebooks, profiles
from lookuplab.runner.execute import ATTEMPTS, run_jobs
from lookuplab.runner.plan import plan

SAVES_AN_ARTIFACT = """\
import pandas as pd
from lookuplab.artifact import Artifact
artifact = Artifact.begin("demo", "counts", profile)
row = dict(model="m", condition="all", metric="product", value=tasks * rate, n=tasks)
artifact.save(pd.DataFrame([row]))"""


def test_a_run_leaves_the_executed_copy_numbers_and_provenance(kit):
    kit.notebook("counts", "import sys; print(sys.executable)", SAVES_AN_ARTIFACT)
    code, said = kit.call("run", "counts")
    assert code == 0, said
    assert kit.output("counts").strip() == sys.executable, "the kernel is another interpreter's"
    table = (kit.root / "figures/mini/demo/counts.csv").read_text().splitlines()
    assert table[0] == "paper,artifact,model,condition,metric,value,ci_low,ci_high,n,paper_value"
    assert table[1:] == ["demo,counts,m,all,product,1.5,,,3,"]
    record = json.loads((kit.root / "figures/mini/demo/counts.json").read_text())
    assert record["parameters"] == {"profile": "mini", "tasks": 3, "rate": 0.5, "names": ["a"]}
    assert record["packages"]["torch"].startswith("2.13.0") and record["wall_seconds"] >= 0


def test_own_parameters_reach_the_notebook_and_spare_the_committed_figures(kit):
    kit.notebook("counts", SAVES_AN_ARTIFACT)
    code, said = kit.call("run", "counts", "-p", "tasks=8", "-p", "rate=2")
    assert code == 0, said
    assert not (kit.root / "figures").exists()
    assert "demo,counts,m,all,product,16,,,8," in (kit.root / "runs/figures/mini/demo/counts.csv").read_text()


def test_a_failing_notebook_tells_cell_and_error_and_the_others_go_on(kit):
    kit.notebook("breaks", "fine = 1", "before = 2\nfine / 0")
    kit.notebook("works", "print('here')")
    code, said = kit.call("reproduce", "-j", "2")
    assert code == 1
    assert "demo/breaks: cell 3: ZeroDivisionError: division by zero" in said
    assert "    fine / 0" in said
    assert "1 of 2 notebooks ran" in said
    assert kit.output("works") == "here\n"


def test_bad_input_that_only_the_notebook_can_find_is_exit_code_2(kit):
    kit.notebook("asks", "from lookuplab.errors import UserError\nraise UserError('no endpoint there; start one')")
    code, said = kit.call("run", "asks")
    assert code == 2
    assert "error: demo/asks: no endpoint there; start one" in said
    assert "Traceback" not in said


def test_a_full_disk_is_one_line_and_exit_code_2(kit):
    kit.notebook("counts", "print('ran')")
    copy = kit.root / "runs/mini/demo/counts.ipynb"
    copy.parent.mkdir(parents=True)
    copy.symlink_to("/dev/full")
    code, said = kit.call("run", "counts")
    assert code == 2 and "error: demo/counts: cannot write" in said and "No space left" in said, said


def test_a_folder_that_cannot_be_made_is_one_line_and_exit_code_2(kit):
    kit.notebook("counts", "print('ran')")
    (kit.root / "runs").write_text("a file where a folder should be")
    code, said = kit.call("run", "counts")
    assert code == 2 and "error: cannot write" in said and "Not a directory" in said, said


def test_a_notebook_that_kills_its_process_is_a_failure_not_a_hang(kit):
    kit.notebook("dies", "import os; os._exit(9)")
    code, said = kit.call("run", "dies")
    assert code == 1 and "DeadKernelError" in said


def test_a_sweep_collects_every_number_beside_its_parameters(kit):
    kit.notebook("counts", SAVES_AN_ARTIFACT)
    code, said = kit.call("sweep", "counts", "-p", "tasks=2,4", "-p", "rate=1", "-j", "2")
    assert code == 0, said
    (table,) = (kit.root / "runs/sweeps").rglob("sweep.csv")
    lines = table.read_text().splitlines()
    assert lines[0].startswith("parameter_tasks,parameter_rate,paper,artifact,")
    assert lines[1:] == ["2,1.0,demo,counts,m,all,product,2,,,2,", "4,1.0,demo,counts,m,all,product,4,,,4,"]


@pytest.fixture
def span(kit):
    """``span(name)``: when a notebook began and when it ended. Its name's first word says its place in the order."""
    order = {"first": ["first_a"], "alone": ["alone_a", "alone_b"], "manual": ["manual_a"]}
    for name in ["any_a", *sum(order.values(), [])]:
        kit.notebook(name, "import time; print(time.monotonic())\ntime.sleep(0.2); print(time.monotonic())")
    (kit.root / "notebooks/order.yaml").write_text(json.dumps({key: [f"demo/{name}" for name in names]
                                                               for key, names in order.items()}))
    return lambda name: tuple(map(float, kit.output(name).split()))


def test_what_fills_the_stores_ends_before_the_others_of_its_paper_begin(kit, span):
    kit.notebook("other", "print('ran')", paper="another")
    code, said = kit.call("reproduce", "-j", "3")
    assert code == 0, said
    assert span("first_a")[1] < span("any_a")[0] and "ran" in kit.output("other", paper="another")


def test_what_measures_time_runs_with_nothing_beside_it(kit, span):
    code, said = kit.call("reproduce", "demo", "-j", "5")
    assert code == 0, said
    others = max(span(name)[1] for name in ("first_a", "any_a", "manual_a"))
    first, second = sorted([span("alone_a"), span("alone_b")])
    assert others < first[0] and first[1] < second[0]


def test_what_runs_on_demand_is_left_out_where_no_paper_is_named(kit, span):
    code, said = kit.call("reproduce", "-j", "3")
    assert code == 0, said
    copies = {file.stem for file in (kit.root / "runs/mini/demo").glob("*.ipynb")}
    assert copies == {"first_a", "any_a"}


@pytest.mark.parametrize("failures", [1, ATTEMPTS])
def test_a_kernel_that_does_not_start_is_tried_again(kit, monkeypatch, failures):
    """A kernel specification whose command exits at once the first times, as one does that finds its port taken."""
    spec, counter = kit.root / "jupyter/kernels/flaky", kit.root / "starts"
    spec.mkdir(parents=True)
    counter.write_text("")
    script = (f"import sys; from pathlib import Path; c = Path({str(counter)!r}); c.write_text(c.read_text() + 'x')\n"
              f"if len(c.read_text()) <= {failures}: sys.exit(1)\n"
              "from ipykernel.kernelapp import launch_new_instance; launch_new_instance()")
    command = [sys.executable, "-c", script, "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "flaky", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(kit.root / "jupyter"))
    notebook = notebooks.read(kit.notebook("counts", "print('ran')"))
    events = []
    job = replace(plan(notebook, profiles.load("mini")), kernel="flaky")
    (result,) = run_jobs([job], listener=lambda job, event: events.append(event["event"]))
    assert len(counter.read_text()) == min(failures + 1, ATTEMPTS)
    if failures < ATTEMPTS:
        assert result.failure is None and events.count("retry") == failures
    else:
        assert result.failure is not None and "cell" not in events


def test_braces_in_a_folder_are_no_placeholders(kit):
    path = kit.notebook("counts", "print('ran')", paper="demo {x}")
    code, said = kit.call("run", str(path))
    assert code == 0, said


def test_a_copy_that_cannot_be_read_again_does_not_hide_the_error(tmp_path):
    """As on a full disk: the error in the cell is told all the same, without the cell's number."""
    from papermill.exceptions import PapermillExecutionError

    from lookuplab.runner.worker import _code_cell_number

    (tmp_path / "copy.ipynb").write_text('{"cells": [')
    error = PapermillExecutionError(0, 1, "source", "UserError", "what was wrong", [])
    assert _code_cell_number(str(tmp_path / "copy.ipynb"), error) == 0
