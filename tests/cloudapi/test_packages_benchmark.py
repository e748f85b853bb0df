"""From a package to tasks, frequencies and documentation augmented generation."""

import ast
import csv

import pytest
from click.testing import CliRunner
from reading_model import ReadingModel

from lookuplab.cli import cli
from lookuplab.cloudapi import own_api
from lookuplab.cloudapi.benchmark import load_tasks
from lookuplab.cloudapi.code_sources import SourceFile
from lookuplab.cloudapi.comments import leaks_name
from lookuplab.cloudapi.dag import documented, oracle, passes
from lookuplab.cloudapi.frequency import count
from lookuplab.cloudapi.frequency_table import read_frequencies
from lookuplab.cloudapi.package_benchmark import LEAKING, REASONS, WORDLESS, obstacles
from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiSpec, load_index


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shop api")


@pytest.fixture(scope="module")
def made(shop, folder):
    return own_api.build([str(shop)], folder, progress=False)


@pytest.fixture(scope="module")
def counts(made, folder):
    return read_frequencies(folder / own_api.FREQUENCIES)


def counted(made, text, path="x.py"):
    found = count([SourceFile(path, text)], made.index)
    return found.names["python", "count_items"], sum(found.bound.values())


def test_prompts_are_python_that_ends_before_the_call(made):
    for task in made.tasks:
        ast.parse(task.prompt + "name()")
        assert task.prompt.endswith(".")


def test_no_comment_gives_the_name_away(made):
    assert not any(leaks_name(task.comment, task.target.rpartition(".")[2]) for task in made.tasks)


def test_a_method_is_asked_for_on_an_object_of_its_class(made):
    prompt = next(task.prompt for task in made.tasks if "Basket.add_item_to" in task.id)
    assert prompt.startswith("from shop import Basket\n") and "client = Basket(*client_args" in prompt


def test_every_operation_is_asked_for_or_left_out_for_a_reason(made):
    found = obstacles(made.index)
    assert sum(found.values()) == sum(spec.operation for spec in made.index.specs)
    assert set(found) <= {"", WORDLESS, LEAKING, *REASONS.values()} and found[""] == len({t.target for t in made.tasks})


def test_names_are_counted_as_calls_and_definitions_in_the_package_and_its_tests(counts):
    assert counts[0]["python/shop.shop.Basket.add_item_to"] == 3  # its definition and two calls


def test_calls_are_bound_through_imports_constructed_objects_and_other_names(counts):
    assert counts[1]["python/shop.shop.count_items"] == 2
    assert counts[1]["python/shop.shop.Basket.add_item_to"] == 2  # under both names; not on what is unknown


@pytest.mark.parametrize(("text", "path", "found"), [
    ("import shop\nshop.count_items(1)", "x.py", (1, 1)), ("import shop as s\ns.stock.count_items(1)", "x.py", (1, 1)),
    ("count_items(1)", "x.py", (0, 0)), ("count_items(1)", "shop/x.py", (1, 0)),
    ("import shopping\ncount_items(1)", "x.py", (0, 0)),
    ("import shop\ncount_items(1) )", "x.py", (1, 0)),
])
def test_only_files_that_import_the_package_or_lie_in_it_are_counted(made, text, path, found):
    assert counted(made, text, path) == found


def test_documentation_of_every_design_is_the_packages_own(made):
    tasks = [task for task in made.tasks if "add_item_to" in task.id]
    shown = oracle(tasks)
    specification = documented(tasks, shown, index=made.index)[0].prompt
    full = documented(tasks, shown, "full", made.index)[0].prompt
    assert "Required arguments: item where" in specification and "where : str" in full


def test_dag_lets_a_model_that_reads_call_what_it_is_shown(made):
    tasks = [task for task in made.tasks if "sort_by_weight" in task.id]
    found = passes(ReadingModel({task.id: "lift" for task in tasks}), tasks, store=False, index=made.index)
    assert not found.first.valid.any() and found.hit.valid.all() and not found.miss.valid.any()


def test_the_command_writes_what_every_other_command_reads(made, shop, folder, tmp_path):
    out = tmp_path / "again"
    done = CliRunner().invoke(cli, ["data", "build", "api", str(shop), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert load_index(out / "index.jsonl.xz").specs == made.index.specs
    assert load_tasks(out / "tasks.jsonl") == made.tasks
    assert [file.read_bytes() for file in sorted(out.iterdir())] == [
        file.read_bytes() for file in sorted(folder.iterdir())]


def test_frequencies_are_counted_over_another_corpus_where_one_is_named(made, folder, tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "use.py").write_text("import shop\n" + "shop.count_items(1)\n" * 12)
    done = CliRunner().invoke(cli, ["data", "frequencies", str(tmp_path / "corpus"), "--index",
                                    str(folder / "index.jsonl.xz"), "-o", str(tmp_path / "counts.csv")])
    assert done.exit_code == 0, done.output
    rows = {row["api"]: row["count_bound"] for row in csv.DictReader((tmp_path / "counts.csv").open())}
    assert rows.pop("python/shop.shop.count_items") == "12" and set(rows.values()) == {"0"}


def test_completions_made_elsewhere_are_judged_by_the_own_index(made, folder, tmp_path):
    line = '{"id": 1, "provider": "python", "client": "shop", "target": "count_items", "candidate": "count_items(2)"}'
    (tmp_path / "lines.jsonl").write_text(line + "\n")
    done = CliRunner().invoke(cli, ["score", "cloudapi", str(tmp_path / "lines.jsonl"), "--index",
                                    str(folder / "index.jsonl.xz")])
    assert done.exit_code == 0 and '"valid": true' in done.output


def test_a_bad_package_ends_the_command_with_one_line_and_code_2():
    done = CliRunner().invoke(cli, ["data", "build", "api", "no_such_package_anywhere"])
    *bar, said = done.output.splitlines()
    assert done.exit_code == 2 and said.startswith("error: no package") and not any("Traceback" in line for line in bar)


def test_a_function_is_asked_for_on_its_module():
    inside = task_prompt(ApiSpec("python", "shop", "shop.stock", "count_items", ()), "Count what is there")
    assert inside == "from shop import stock\n\n# Count what is there\nresult = stock."
    outside = task_prompt(ApiSpec("python", "shop", "shop", "count_items", ()), "Count")
    assert outside == "import shop\n\n# Count\nresult = shop."


def test_a_compiled_module_needs_a_corpus_to_count_in(tmp_path):
    done = CliRunner().invoke(cli, ["data", "build", "api", "math", "-o", str(tmp_path / "math")])
    assert done.exit_code == 2 and "name a corpus" in done.output
