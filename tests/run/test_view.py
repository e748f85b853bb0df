"""The page of a run's answers, in a real browser; and two runs compared."""

import json
from dataclasses import dataclass
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from chromium import BINARY, Browser

from lookuplab import paths
from lookuplab.benchmark import Asked, Benchmark, judged, offer
from lookuplab.models import Completion, Prompt
from lookuplab.models.completions import JUDGED, LOG_VARIABLE
from lookuplab.run.commands import view
from lookuplab.run.jobs import load_profile, plan
from lookuplab.run.notebooks import find
from lookuplab.run.runner import keep_judged

# text of a model, which must stay text, with a word that is longer than a line of a phone
MARKUP = "</script><b id='made'>x</b>" + 60 * "y"


@dataclass
class Sums(Benchmark):
    """Is the answer the sum? Documented prompts have a line before them."""

    documented: bool = False
    measures = ("right",)
    by = "size"

    def prompt(self, task):
        return Prompt(task.id, f"{'# a hint' * self.documented}\n{task.id} = ")

    def condition(self, _):
        return "hint" if self.documented else "no document"

    def judge(self, task, completion):
        is_right = completion.text == str(eval(task.id))
        why = "" if is_right else f"'{completion.text}' is no sum"
        return {"size": task.size, "right": is_right, "error": why}


def answer(id, text):
    record = [{"step": 0, "begun": "o", "offered": ("first", "one", "once"), "failure": ""}]
    return Completion(id, 0, text, (text, ""), (1, 2), (-0.5, 0), "eos", 3, record=record)


def log(folder, wrong, documented=False, models=("small", "large")):
    """Judge answers of models as in a run; ``wrong[model]`` are the tasks that it fails."""
    bench = Sums(documented)
    numbers = {f"{n} + {n}": n for n in range(6)}
    bench.tasks = [SimpleNamespace(id=id, size=("even", "odd")[n % 2]) for id, n in numbers.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOG_VARIABLE, str(paths.made(folder) / "log"))
        for model in models:
            texts = {id: MARKUP if n in wrong[model] else str(2 * n) for id, n in numbers.items()}
            pairs = [(task, answer(task.id, texts[task.id])) for task in bench.tasks]
            judged(bench, pairs, [Asked(model)] * 6)


@pytest.fixture
def ran(kit, tmp_path):
    """A run of a notebook that judged answers: {model: tasks that it fails}, and a parameter."""
    kit.notebook("sums", "1")
    number = iter(range(100))

    def run(wrong, tasks=3, **options):
        made = tmp_path / str(next(number))
        log(made, wrong, **options)
        log(made, {model: {0} for model in wrong}, True, [*wrong])
        job = plan_of("sums", tasks)
        paths.made(job.output.parent)
        keep_judged(job, made / JUDGED)

    return run


def plan_of(name, tasks):
    return plan(find(name), load_profile("mini"), {"tasks": tasks})


def test_of_the_names_that_a_tool_offered_the_one_taken_comes_first():
    asked = {"step": 0, "begun": "o", "offered": ("first", "on", "one"), "failure": ""}
    done = Completion("a", 0, "x.one = 2", ("x.o", "ne", " = 2"), (1, 2, 3), None, "eos", 3)
    assert offer(done, asked) == (0, 3, ["one", "first", "on"], "", "one")


def test_a_notebook_without_judged_answers_says_in_a_line_what_makes_them(kit):
    kit.notebook("sums", "1")
    for name in ("sums", f"'{paths.RUNS}/mini/demo/sums.ipynb'"):
        said = kit.said(f"view {name}", code=2)
        assert "here, of 0 runs that are kept: `lookuplab run` makes them" in said
        assert said.startswith("error: no judged answers of ") and said.count("\n") == 1


def test_runs_with_other_parameters_stay_and_are_named_by_how_many_came_after(ran, kit):
    for tasks in (3, 3, 4, 5):  # the second replaces the first
        ran({"small": {tasks}}, tasks, models=["small"])
    for name in ("sums", "sums~1", "sums~2"):
        assert "12 answers: open" in kit.said(f"view {name} --output '{kit.root}/{name}'")
    texts = [(kit.root / name / "index.js").read_text() for name in ("sums", "sums~1", "sums~2")]
    assert [json.loads(text[16:-2])["about"][0]["parameters"]["tasks"] for text in texts] == [
        5,
        4,
        3,
    ]
    assert "no judged answers of sums~3 here, of 3 runs" in kit.said("view sums~3", code=2)


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_damaged_answers_are_a_line(ran, kit, damage):
    ran({"small": {1}}, models=["small"])
    [file] = paths.RUNS.rglob(f"*.{JUDGED}")
    file.write_bytes(file.read_bytes()[:-20] if damage is None else damage)
    for command in ("view sums", "compare sums sums"):
        assert kit.said(command, code=2).count("\n") == 1


def test_a_page_takes_the_place_of_no_other_file(ran, kit):
    ran({"small": {1}}, models=["small"])
    paths.write_lines(kit.root / "mine" / "rows", ())
    for name in ("mine", "mine/rows"):
        assert "is not an empty folder" in kit.said(
            f"view sums --output '{kit.root}/{name}'", code=2
        )


def test_two_runs_are_paired_by_task(ran, kit):
    ran({"small": {1, 2}}, 3, models=["small"])
    ran({"small": {2, 3, 4}}, 4, models=["small"])
    said = kit.said("compare sums~1 sums")
    assert "parameters that changed:\n  tasks: 3 -> 4\n" in said
    *line, gap, lost, gained, p = next(
        line for line in said.split("\n") if "no doc" in line
    ).split()
    # two of six tasks are lost, one is gained
    assert line[:7] == ["small", "no", "document", "6", "66.7", "50.0", "-16.7"]
    assert (lost, gained, p) == ("2", "1", "1") and gap.endswith("]")


def test_two_runs_of_one_model_each_are_compared_though_it_is_another(ran):
    ran({"small": {1, 2}}, 3, models=["small"])
    ran({"large": {1}}, 4, models=["large"])
    table = view.compared(view.side("sums~1"), view.side("sums"))
    assert [*table.model] == 2 * ["small -> large"] and [*table.n] == [6, 6]


def test_what_has_nothing_in_common_is_refused_in_a_line(ran, kit):
    ran({"small": {1}}, 3, models=["small"])
    ran({"large": {1}, "other": {1}}, 4, models=["large", "other"])
    told = kit.said("compare sums~1 sums", code=2)
    assert told.startswith("error: nothing in common to compare: small (")
    told = kit.said(f"compare sums '{paths.made(kit.root / 'c')}'", code=2)
    assert "holds no judged answers" in told


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not BINARY:
        pytest.skip("no Chromium on this machine")
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def page(ran, kit):
    ran({"small": {1, 2, 3}, "large": {3, 4}})
    kit.said(f"view sums --output '{kit.root}/page'")
    return kit.root / "page"


COUNT = "document.getElementById('count').textContent"
SIGNS = "[...document.querySelectorAll('#rows .verdict')].map(one => one.textContent).join('')"


def choose(browser, **values):
    for name, value in values.items():
        node, event = f"document.getElementById('{name}')", "input" if name == "q" else "change"
        browser.evaluate(f"{node}.value = {json.dumps(value)}")
        browser.evaluate(f"{node}.dispatchEvent(new Event('{event}'))")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_reader_filters_opens_and_searches_on_a_desk_and_on_a_phone(browser, page, width):
    browser.open((page / "index.html").as_uri(), width)
    browser.until(f"{COUNT} === '24 of 24 answers'")
    choose(browser, verdict="wrong", model="small", condition="no document")
    browser.until(f"{COUNT} === '3 of 24 answers'")
    assert browser.evaluate(SIGNS) == "✗✗✗"
    browser.evaluate("document.querySelector('#rows a').click()")
    browser.until("document.querySelector('#detail h2')?.textContent === '1 + 1'")
    detail = browser.evaluate("document.getElementById('detail').innerText")
    for text in (MARKUP, "is no sum", "1 + 1 =", "61", "3 names"):
        assert text in detail
    assert browser.evaluate("document.querySelector('#detail mark').textContent") == MARKUP
    assert browser.evaluate("document.getElementById('made')") is None
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    choose(browser, verdict="", model="", condition="", q="A HINT")
    browser.until(f"{COUNT} === '12 of 24 answers'")


def test_what_is_right_here_and_wrong_there_comes_first(browser, page):
    sides = {"here": "large · no document", "there": "small · no document"}
    browser.open(f"{(page / 'index.html').as_uri()}#{urlencode(sides)}")
    browser.until(f"{COUNT}.startsWith('6 tasks: 2 right here, wrong there; 1 wrong here, right')")
    tasks = "[...document.querySelectorAll('#rows .id:not(.quiet)')].map(one => one.textContent)"
    assert browser.evaluate(tasks)[:3] == ["1 + 1", "2 + 2", "4 + 4"]
    browser.evaluate("document.querySelector('#rows a').click()")
    browser.until("document.querySelectorAll('.sides > section').length === 2")
    assert browser.evaluate("document.querySelectorAll('.sides .right').length") == 1


@pytest.mark.parametrize("width", [1280, 390])
def test_the_first_screen_leads_to_the_answers_that_a_document_made_wrong(browser, page, width):
    browser.open((page / "index.html").as_uri(), width)
    links = "[...document.querySelectorAll('#detail a')]"
    browser.until(f"{links}.length === 2")
    assert browser.evaluate(f"{links}[0].innerText") == "1: small · hint"
    browser.evaluate(f"{links}[0].click()")
    browser.until(f"{COUNT}.startsWith('6 tasks: 1 right here, wrong there')")
    assert "is no sum" in browser.evaluate("document.querySelector('#rows li').innerText")


def test_an_address_leads_to_one_answer(browser, page):
    open_ = json.dumps(["3 + 3", 0, "small", "hint"], separators=(",", ":"))
    address = urlencode({"model": "small", "open": open_})
    browser.open(f"{(page / 'index.html').as_uri()}#{address}")
    browser.until("document.querySelector('#detail h2')?.textContent === '3 + 3'")
    assert browser.evaluate("document.querySelector('.prompt .shown').textContent") == "# a hint"
    assert browser.evaluate(COUNT) == "12 of 24 answers"


def test_keys_move_through_the_list(browser, page):
    browser.open((page / "index.html").as_uri())
    browser.until(f"{COUNT} === '24 of 24 answers'")
    for key, task in (("j", "0 + 0"), ("j", "1 + 1"), ("k", "0 + 0")):
        browser.evaluate(f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))")
        browser.until(f"document.querySelector('#detail h2')?.textContent === '{task}'")
    browser.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    browser.until("!document.querySelector('#detail h2')")
