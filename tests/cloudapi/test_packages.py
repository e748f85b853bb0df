"""An own package: what its index holds, what a call is judged to be, its frequencies and tasks."""

import ast
import inspect
import signal
import statistics
import subprocess
import sys

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_model import ReadingModel

from lookuplab.cli import cli
from lookuplab.cloudapi import packages
from lookuplab.cloudapi.benchmark import load_tasks
from lookuplab.cloudapi.comments import leaks_name
from lookuplab.cloudapi.dag import passes
from lookuplab.cloudapi.frequency import count, read_frequencies
from lookuplab.cloudapi.packages import offered
from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiSpec, load_index
from lookuplab.cloudapi.validity import (
    INCORRECT_EXISTING,
    INVALID_USAGE,
    NONEXISTENT,
    CallArguments,
    bind_error,
    judge,
)
from lookuplab.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shop api")


@pytest.fixture(scope="module")
def made(shop, folder):
    return packages.build([str(shop)], folder)


@pytest.fixture(scope="module")
def index(made):
    return made.index


def spec(index, name):
    return index.by_id[f"python/shop.{name}"]


def written(tmp_path, text):
    folder = tmp_path / "written"
    folder.mkdir()
    (folder / "__init__.py").write_text(text)
    return str(folder)


def test_arguments_are_required_or_optional_as_the_signature_says(index):
    method = spec(index, "shop.Basket.add_item_to")
    assert (method.required, method.optional) == (("item", "where"), ("amount",))
    assert spec(index, "shop.Basket").required == ("owner",)  # without self


def test_a_reexport_is_counted_once_under_its_shortest_path(index):
    assert [api for api in index.by_id if "count_items" in api] == ["python/shop.shop.count_items"]


@pytest.mark.parametrize("name", ["_secret", "_hidden", "dumps", "not_offered", "weight"])
def test_private_foreign_and_property_names_are_not_listed(index, name):
    assert not any(api.endswith(f".{name}") for api in index.by_id)


def test_a_lazily_loaded_name_is_found(index):
    assert spec(index, "shop.late_arrival").required == ("date",)


def test_methods_of_a_private_base_belong_to_the_public_class(index):
    assert "python/shop.shop.Basket.sort_by_weight" in index.by_id


def test_a_method_is_listed_on_the_class_that_defines_it(index):
    assert set(index.methods("python", "shop.BigBasket")) == {"lift_with_crane"}


def test_exceptions_and_class_methods_exist_but_are_no_operations(index):
    for name in ("shop.StockError", "shop.Basket.from_text"):
        assert not spec(index, name).operation


def test_signatures_that_take_anything_or_are_unknown_are_flagged(index):
    assert "open_signature" in spec(index, "shop.put_away").flags
    flagged = [one.name for one, _ in offered("math")[0] if "open_signature" in one.flags]
    assert "hypot" in flagged and "sqrt" not in flagged


def test_modules_that_exit_or_raise_are_left_out_and_counted(shop):
    assert offered(str(shop))[1] == {
        "module: SystemExit when imported": 1,
        "module: RuntimeError when imported": 1,
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os; os._exit(7)", "written ended the process that imported it (7)"),
        ("import sys; sys.exit('enough')", "does not import: SystemExit: enough"),
        ("import a_module_that_nobody_has", "does not import: ModuleNotFoundError"),
        ("1 / 0", "does not import: ZeroDivisionError"),
    ],
)
def test_a_package_that_cannot_be_read_is_one_clear_line(tmp_path, source, said):
    with pytest.raises(UserError) as failure:
        offered(written(tmp_path, source))
    assert said in str(failure.value) and "\n" not in str(failure.value)


def test_a_module_that_does_not_return_ends_the_reading_process(tmp_path):
    written(tmp_path, "import time; time.sleep(60)")
    program = (
        f"import sys; sys.path.append({str(tmp_path)!r}); from lookuplab.cloudapi import packages; "
        f"packages.IMPORT_SECONDS = 1; packages.main('written', {str(tmp_path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", program])
    assert done.returncode == -signal.SIGALRM


def test_two_readings_give_the_same_index(shop):
    assert offered(str(shop)) == offered(str(shop))


@pytest.mark.parametrize(
    ("candidate", "category"),
    [
        ("add_item_to(1, 'top', amount=2)", "valid"),
        ("add_item_to(1)", INVALID_USAGE),
        ("add_item_to(item=1, where='top')", INVALID_USAGE),
        ("sort_by_weight()", INCORRECT_EXISTING),
        ("add_items(1)", NONEXISTENT),
    ],
)
def test_a_call_is_judged_by_its_signature(index, candidate, category):
    target = "python/shop.shop.Basket.add_item_to"
    judged = judge(candidate, target, index, "python", "shop.Basket", "shop")
    assert judged.category == category


STATISTICS = [one for one, _ in offered("statistics")[0] if not one.module and one.operation]


@settings(deadline=None)  # a machine may be busy
@given(st.sampled_from(STATISTICS), st.integers(0, 4), st.data())
def test_a_call_is_valid_iff_it_binds_to_the_function_itself(api, positional, data):
    names = [p.name for p in api.parameters] + ["unknown"]
    keywords = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    function = inspect.signature(getattr(statistics, api.name))
    try:
        function.bind(*[0] * positional, **dict.fromkeys(keywords, 0))
        binds = True
    except TypeError:
        binds = False
    call = CallArguments(positional, tuple(keywords))
    assert (bind_error(api, call) is None) == binds


def test_prompts_are_python_that_ends_before_the_call(made):
    for task in made.tasks:
        ast.parse(task.prompt + "name()")
        assert task.prompt.endswith(".")
        assert not leaks_name(task.comment, task.target.rpartition(".")[2])


def test_a_method_is_asked_for_on_an_object_of_its_class(made):
    prompt = next(task.prompt for task in made.tasks if "Basket.add_item_to" in task.id)
    assert prompt.startswith("from shop import Basket\n")
    assert "client = Basket(*client_args" in prompt


def test_a_function_is_asked_for_on_its_module():
    inside = task_prompt(ApiSpec("python", "shop", "shop.stock", "", ()), "Count what is there")
    assert inside == "from shop import stock\n\n# Count what is there\nresult = stock."
    outside = task_prompt(ApiSpec("python", "shop", "shop", "", ()), "Count")
    assert outside == "import shop\n\n# Count\nresult = shop."


def test_every_operation_is_asked_for_or_left_out_for_a_reason(made):
    operations = sum(spec.operation for spec in made.index.specs)
    reasons = sum(n for reason, n in made.left_out.items() if reason.startswith("operation"))
    assert operations == reasons + len({task.target for task in made.tasks})


def test_names_are_counted_as_calls_and_definitions_in_the_package_and_its_tests(made, folder):
    names = read_frequencies(folder / packages.FREQUENCIES).count_name
    assert names["python/shop.shop.Basket.add_item_to"] == 3  # its definition and two calls


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        ("import shop\nshop.count_items(1)", "x.py", 1),
        ("count_items(1)", "x.py", 0),
        ("count_items(1)", "shop/x.py", 1),
        ("import shopping\ncount_items(1)", "x.py", 0),
        ("import shop\ncount_items(1) )", "x.py", 1),
    ],
)
def test_only_files_that_import_the_package_or_lie_in_it_are_counted(index, text, path, found):
    frame, _ = count([(path, text)], index)
    assert frame.count_name["python/shop.shop.count_items"] == found


def test_dag_lets_a_model_that_reads_call_what_it_is_shown(made):
    tasks = [task for task in made.tasks if "sort_by_weight" in task.id]
    model = ReadingModel({task.id: "lift" for task in tasks})
    found = passes(model, tasks, store=False, index=made.index)
    assert not found.first.valid.any() and found.hit.valid.all() and not found.miss.valid.any()


def test_the_command_writes_what_every_other_command_reads(made, shop, folder, tmp_path):
    done = CliRunner().invoke(cli, ["data", "build", "api", str(shop), "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert load_index(tmp_path / "index.jsonl.xz").specs == made.index.specs
    assert load_tasks(tmp_path / packages.TASKS) == made.tasks
    for file in folder.iterdir():
        assert file.read_bytes() == (tmp_path / file.name).read_bytes(), file.name


@pytest.mark.parametrize(
    ("package", "said"),
    [("no_such_package_anywhere", "does not import"), ("math", "name a corpus")],
)
def test_a_bad_package_ends_the_command_with_one_line_and_code_2(tmp_path, package, said):
    done = CliRunner().invoke(cli, ["data", "build", "api", package, "-o", str(tmp_path)])
    assert done.exit_code == 2 and done.stderr.startswith("error: ") and said in done.stderr
    assert done.stderr.count("\n") == 1
