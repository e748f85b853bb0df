"""Tests the page of a run's answers in a real browser, and the comparison of two runs."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pandas as pd
import pytest

from lookuplab import paths
from lookuplab.benchmark import Asked, Benchmark, judged, offer_fields
from lookuplab.cloudapi.bench import NO_DOCUMENT, RIGHT_DOCUMENT, WRONG_DOCUMENT
from lookuplab.models import Completion, Prompt
from lookuplab.models.store import JUDGED
from lookuplab.run.commands import view
from lookuplab.run.notebooks import find, load_profile, plan
from lookuplab.run.runner import keep_judged

# a model's text, which must not be read as HTML
MARKUP = "</script><b id='made'>x</b>"


@dataclass
class Given(Benchmark):
    """Judges answers as the table ``given`` says: {task: (the answer's text, its columns)}. All
    prompts begin with the same document.
    """

    name: str
    document: str
    given: dict
    measures = ("size", "right")  # the first is no boolean
    by = "size"

    def prompt(self, task):
        return Prompt(task.id, f"{self.document}\n{task.id} = ")

    def condition(self, _):
        return self.name

    def judge(self, task, _):
        return self.given[task.id][1]


def keep(job, *asked):
    """Judge and keep answers as a run of a job does. ``asked`` are pairs of model and benchmark."""
    record = [{"step": 0, "begun": "o", "offered": ("first", "one", "once"), "failure": ""}]
    with pytest.MonkeyPatch.context() as patch, paths.temporary_folder() as made:
        patch.setenv("LOOKUPLAB_LOGS", made)
        for model, bench in asked:
            pairs = [
                (
                    SimpleNamespace(id=id),
                    Completion(id, 0, text, (text, ""), (1, 2), (-0.5, 0), "eos", 3, record=record),
                )
                for id, (text, _) in bench.given.items()
            ]
            judged(bench, pairs, [Asked(model)] * len(pairs))
        paths.write_text(job.output, "{}")
        keep_judged(job, Path(made) / JUDGED)


def sums(wrong):
    """Return a model's answers to six sums. The sums whose numbers are in ``wrong`` are wrong."""
    given = {}
    for n in range(6):
        text = MARKUP if n in wrong else str(2 * n)
        columns = {"size": ("even", "odd")[n % 2], "right": n not in wrong}
        columns["error"] = f"'{text}' is no sum" if n in wrong else ""
        given[f"{n} + {n}"] = text, columns
    return given


@pytest.fixture
def ran(kit):
    """Return a function that pretends to run a notebook that judges answers. It takes {model: tasks
    that it fails} and a parameter of the notebook. With a document, each model fails one task.
    """
    kit.notebook("sums", "1")

    def run(wrong, tasks=3):
        asked = [(model, Given("no document", "", sums(failed))) for model, failed in wrong.items()]
        asked += [(model, Given("hint", "# a hint", sums({0}))) for model in wrong]
        keep(plan_of("sums", {"tasks": tasks}), *asked)

    return run


def plan_of(name, parameters):
    return plan(find(name), load_profile("mini"), parameters)


def index(kit, name="page"):
    """Return the content of the file that a page in the checkout reads first."""
    return json.loads((kit.root / name / "index.js").read_text()[16:-2])


def test_of_the_names_that_a_tool_offered_the_one_taken_comes_first():
    asked = {"step": 0, "begun": "o", "offered": ("first", "on", "one"), "failure": ""}
    done = Completion("a", 0, "x.one = 2", ("x.o", "ne", " = 2"), (1, 2, 3), None, "eos", 3)
    assert offer_fields(done, asked) == (0, 3, ["one", "first", "on"], "", "one")


@pytest.mark.parametrize("name", ["sums", "'{copy}'"])
def test_a_line_says_what_makes_judged_answers_or_that_the_notebook_keeps_none(kit, name):
    copy = paths.RUNS / "mini" / kit.notebook("sums", "1").relative_to(paths.NOTEBOOKS)
    for advice in "type `lookuplab run ", "its notebook keeps no answers one by one":
        said = kit.refused(f"view {name.format(copy=copy)}")
        assert f"here (0 of its runs are kept): {advice}" in said
        paths.write_text(copy, "{}")  # as after a run


def test_runs_with_other_parameters_stay_and_are_named_by_how_many_came_after(ran, kit):
    # the second run replaces the first, because its parameters are the same
    for tasks in (3, 3, 4, 5):
        ran({"small": {tasks}}, tasks)
    for name in ("sums", "sums~1", "sums~2"):
        assert "12 answers: open" in kit.said(f"view {name} --output '{kit.root}/{name}'")
    abouts = [index(kit, name)["about"][0] for name in ("sums", "sums~1", "sums~2")]
    assert [one["parameters"]["tasks"] for one in abouts] == [5, 4, 3]
    said = kit.refused("view sums~3")
    assert "answers of sums~3 here (3 of its runs are kept)" in said
    assert "other values of -p" in said


OLD = b'{"parameters": {}}\n{"model": "small", "right": true}'  # as an older kit wrote it


@pytest.mark.parametrize("damage", [b"", b"x", OLD, None])
def test_damaged_answers_are_a_line(ran, kit, damage):
    ran({"small": {1}})
    [file] = paths.RUNS.rglob(f"*.{JUDGED}")
    file.write_bytes(file.read_bytes()[:-20] if damage is None else damage)
    for command in ("view sums", "compare sums sums"):
        assert kit.refused(command)


def test_a_page_takes_the_place_of_no_other_file(ran, kit):
    ran({"small": {1}})
    paths.write_lines(kit.root / "mine" / "rows", ())
    for name in ("mine", "mine/rows"):
        said = kit.refused(f"view sums --output '{kit.root}/{name}'")
        assert "is not an empty folder" in said


def test_two_runs_are_paired_by_task(ran, kit):
    ran({"small": {1, 2}}, 3)
    ran({"small": {2, 3, 4}}, 4)
    said = kit.said("compare sums~1 sums")
    assert "parameters that changed:\n  tasks: 3 -> 4\n" in said
    *line, _, _, lost, gained, p = next(
        line for line in said.split("\n") if "no doc" in line
    ).split()
    # two of six tasks are lost, and one is gained
    assert line[:8] == ["small", "no", "document", "all", "6", "66.7", "50", "-16.7"]
    assert (lost, gained, p) == ("2", "1", "1")


def test_two_runs_of_one_model_each_are_compared_though_it_is_another(ran, kit):
    ran({"small": {1, 2}}, 3)
    ran({"large": {1}}, 4)
    assert re.search(
        r"small -> large +no document +all +6 +66.7 +83.3", kit.said("compare sums~1 sums")
    )


def test_what_has_nothing_in_common_is_refused_in_a_line(ran, kit):
    ran({"small": {1}}, 3)
    ran({"large": {1}, "other": {1}}, 4)
    told = kit.refused("compare sums~1 sums")
    assert told.startswith("error: nothing in common to compare: small ")


def test_pairs_that_a_document_broke_are_printed_different_apis_first(called, kit):
    called(threshold=0.5)
    said = kit.said("view calls --broken 2")
    assert "- small, DAG, wrong document: 2 of the 2 tasks that are right without" in said
    # b is wrong with the wrong document, and c with either document
    assert re.findall("^## (.*)$", said, re.MULTILINE) == ["aws/c", "aws/b"]
    for text in (
        "small, DAG, wrong document: calls the document's API",
        "Document\n\n````\nabout\n````",
        "With it: asks for another\n\n````\nc()\n````",
    ):
        assert text in said


def judgements(folder, name, right, **columns):
    paths.write_lines(
        folder / name,
        map(json.dumps, [{"id": id, "valid": valid, **columns} for id, valid in right.items()]),
    )
    return f"'{folder / name}'"


def test_two_files_of_judgements_are_paired_by_id(kit, tmp_path):
    first = judgements(tmp_path, "a.jsonl", {1: True, 2: True, 3: False, 4: True}, cluster="x")
    second = judgements(tmp_path, "b.jsonl", {1: True, 2: False, 3: True, 4: False, 5: True})
    said = kit.said(f"compare {first} {second}")
    assert re.search(r"valid +all +4 +75 +50 +-25", said) and " 2 " in said
    assert f"{tmp_path}/a.jsonl (2): 2, 4\n" in said and f"{tmp_path}/b.jsonl (1): 3\n" in said


REFUSED = """\
 | none of its 0 lines has a verdict
{"id": 1, "valid": "no"} | none of its 1 lines has a verdict
{"valid": true} | line 1: 'id' must be
{"id": [1], "valid": true} | line 1: 'id' must be
{"id": 1, "sample": [], "valid": true} | 'sample' (if any)
{"id": 1, "valid": true, "passed": 2}\\n{"id": 2, "valid": 2} | 'valid' true, false or null
x | line 1
{"id": 2, "valid": true}\\n{"id": "2", "valid": true} | two lines have the same id"""


@pytest.mark.parametrize("case", REFUSED.splitlines())
def test_a_file_without_a_verdict_for_each_id_is_refused_in_a_line(kit, tmp_path, case):
    lines, _, why = case.partition(" | ")
    good = judgements(tmp_path, "a.jsonl", {1: True})
    (tmp_path / "b.jsonl").write_text(lines.replace("\\n", "\n"))
    assert why in kit.refused(f"compare {good} '{tmp_path}/b.jsonl'")


# {task: (the model's confidence, and whether the answer is right without a document, with the right
# one, and with a wrong one)}
SURE = {"aws/a": (0.4, 0, 1, 0), "aws/b": (0.6, 1, 1, 0), "aws/c": (0.9, 1, 0, 0)}
DECLARED = 'profile = "mini"\ntasks = 3\nthreshold = 0.8\nprecision = 50'
CSV = "paper,artifact,model,condition,metric,value,ci_low,ci_high,n,clusters,paper_value\n"


@pytest.fixture
def called(kit):
    """Return a function that pretends to run a notebook with a threshold and a precision. It writes
    the run's answers and the number of its artifact.
    """
    kit.notebook("calls", 'artifact = Artifact("demo", "calls", profile)', parameters=DECLARED)

    def run(value=0.0, **parameters):
        asked = []
        for at, condition in enumerate((NO_DOCUMENT, RIGHT_DOCUMENT, WRONG_DOCUMENT), 1):
            wrong = "nonexistent" if at == 1 else "incorrect_existing"
            given = {
                id: (
                    "c()",
                    {
                        "size": id[-1],
                        "minimum": facts[0],
                        "exists_anywhere": True,
                        "right": bool(facts[at]),
                        "name": "about",
                        "reason": "asks for another",
                        "category": "right" if facts[at] else wrong,
                    },
                )
                for id, facts in SURE.items()
            }
            asked.append(("small", Given(condition, "about" * (at > 1), given)))
        job = plan_of("calls", parameters)
        table = f"demo,calls,small,dag/all,valid_percent,{value},,,3,3,\n"
        paths.write_text(job.place / "calls.csv", CSV + table)
        keep(job, *asked)

    return run


def test_a_page_looks_up_below_the_threshold_of_each_run(called, kit):
    called(threshold=0.5)
    called(threshold=0.7)
    kit.said(f"view calls~1 calls --output '{kit.root}/page'")
    # each run has nine answers, and the first three are without a document
    assert index(kit)["policies"]["dag_plus_plus"] == [0, 9, 10]
    assert [about["threshold"] for about in index(kit)["about"]] == [0.5, 0.7]
    # the ways in which a wrong document misled the model
    assert {*index(kit)["words"]["fault"]} == {"", "invents a name", "calls the document's API"}


def test_policies_are_compared_each_with_its_run_s_threshold_and_precision(called):
    called(threshold=0.5, precision=50)
    called(threshold=0.7, precision=100)
    table = view.comparison_table(view.match_rows(view.side("calls~1"), view.side("calls")))
    table = table[table["asked with"] == "dag_plus_plus"]
    [line] = table[table["class"] == "all"].itertuples()
    # both runs look a up, and the second run also looks b up: (0.5 + 1 + 1) / 3 and (1 + 1 + 1) / 3
    assert (line.first_percent, line.second_percent) == pytest.approx((250 / 3, 100))
    assert (line.better_in_first, line.better_in_second) == (0, 1)
    by_class = table[table["class"] != "all"]
    assert [*by_class["class"]] == ["a", "b", "c"] and [*by_class.change] == [50, 0, 0]


def test_a_comparison_ends_with_the_numbers_that_changed_and_where_all_are(called, kit):
    called(12.5, threshold=0.5)
    called(37.5, threshold=0.7)
    said = kit.said(f"compare calls~1 calls -o '{kit.root}/compared.csv'")
    assert (
        pd.read_csv(kit.root / "compared.csv")[["change", "ci_low", "ci_high"]]
        .dtypes.eq(float)
        .all()
    )
    assert "calls small   dag/all valid_percent 12.5 37.5" in said
    *_, files, _, _ = said.split("\n")
    assert [Path(file).read_text() for file in re.findall(r"/\S.*?\.csv", files)] == [
        f"{CSV}demo,calls,small,dag/all,valid_percent,{value},,,3,3,\n" for value in (12.5, 37.5)
    ]


@pytest.fixture
def shown(tmp_path):
    """Return a function that lets a headless Chromium open a page at an address, which decides what
    the page shows, and returns the page's text.
    """
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("no Chromium on this machine")
    options = "--headless --no-sandbox --disable-gpu --virtual-time-budget=10000 --dump-dom"

    def opened(page, **address):
        place = f"{(page / 'index.html').as_uri()}#{urlencode(address)}"
        call = [chromium, *options.split(), f"--user-data-dir={tmp_path}/profile", place]
        html = subprocess.check_output(call, text=True, stderr=subprocess.DEVNULL)
        body = html.partition("<header>")[2].partition("<script>")[0]
        return unescape(re.sub("<[^>]*>", "", body))

    return opened


@pytest.fixture
def page(ran, kit):
    ran({"small": {1, 2, 3}, "large": {3, 4}})
    kit.said(f"view sums --output '{kit.root}/page'")
    return kit.root / "page"


def test_an_address_filters_searches_and_opens_an_answer_as_text(shown, page):
    one = json.dumps(["1 + 1", 0, "small", "no document"], separators=(",", ":"))
    wrong = {"verdict": "wrong", "model": "small", "condition": "no document"}
    text = shown(page, **wrong, open=one)
    assert re.search(r"3 of 24 answers\s*✗1 \+ 1", text)
    for part in ("✗ wrong: ", f"Answer{MARKUP}", "is no sum", "1 + 1 =", "61", "3 names"):
        assert part in text
    assert "12 of 24 answers" in shown(page, q="A HINT")


def test_two_sides_are_counted_and_what_is_right_on_the_left_only_comes_first(shown, page):
    sides = {"here": "large · no document", "there": "small · no document"}
    text = shown(page, **sides)
    assert "6 tasks2 right only with large · no document1 right only with small" in text
    assert re.findall(r"(. .)(\d) \+ \d", text)[:3] == [("✓ ✗", "1"), ("✓ ✗", "2"), ("✗ ✓", "4")]


def test_the_first_screen_and_a_pair_say_what_a_document_made_wrong(shown, page, called, kit):
    assert "1: small · hint" in shown(page)
    called(threshold=0.5)
    kit.said(f"view calls --output '{kit.root}/pairs'")
    sides = {"here": "small · no document", "there": "small · DAG, wrong document"}
    one = json.dumps(["aws/b", 0, "small", "no document"], separators=(",", ":"))
    text = shown(kit.root / "pairs", **sides, group="1/0", open=one)
    for part in (
        "Wrong document: BM25's best documents for the first answer, without the target",
        "breaks them: calls the document's API (2)",
        "DAG++ would not have looked it up: the confidence 0.60 is not below",
    ):
        assert part in text
