"""An index of any importable package: what is in it, what is left out and counted, and what it says of a call."""

import inspect
import signal
import statistics
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.cloudapi.docstrings import description_of, documented_names
from lookuplab.cloudapi.packages import index_of, inspected
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
def package(shop):
    return inspected(str(shop), progress=False)


@pytest.fixture(scope="module")
def index(package):
    return index_of([package])


@pytest.fixture(scope="module")
def compiled():
    return inspected("math", progress=False)


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


def test_a_constructor_is_called_on_its_module_without_self(index):
    assert (spec(index, "shop.Basket").required, spec(index, "shop.Basket").module) == (("owner",), "")


def test_keywords_that_only_the_docstring_lists_are_optional_arguments(index):
    assert spec(index, "shop.count_items").optional == ("deep", "unit")


def test_a_reexport_is_counted_once_under_its_shortest_path(index):
    assert [api for api in index.by_id if api.endswith(".count_items")] == ["python/shop.shop.count_items"]
    assert spec(index, "shop.count_items").also == ("stock.count_items",)


def test_what_begins_with_an_underscore_or_comes_from_elsewhere_is_not_public(index):
    assert not any(word in api for api in index.by_id for word in ("_secret", "_hidden", "dumps", "not_offered"))


def test_a_lazily_loaded_name_is_found(index):
    assert spec(index, "shop.late_arrival").required == ("date",)


def test_methods_of_a_private_base_belong_to_the_public_class(index):
    assert "python/shop.shop.Basket.sort_by_weight" in index.by_id


def test_inherited_methods_are_listed_once_and_exist_on_the_subclass(index):
    assert "python/shop.shop.BigBasket.add_item_to" not in index.by_id
    assert {"add_item_to", "lift_with_crane", "from_text"} <= index.methods("python", "shop.BigBasket").keys()


def test_a_protocol_gives_its_methods_to_the_classes_that_follow_it(index):
    assert "carry_it_home" in index.methods("python", "shop.stock.Porter")


def test_exceptions_class_methods_and_properties_exist_but_are_no_operations(index):
    names = ("shop.StockError", "shop.Basket.from_text", "shop.Basket.weight")
    assert [spec(index, name).operation for name in names] == [False] * 3


def test_a_signature_that_takes_anything_is_flagged(index):
    assert "open_signature" in spec(index, "shop.put_away").flags


def test_modules_that_exit_crash_or_raise_are_left_out_and_counted(package):
    assert package.left_out == {"module: SystemExit when imported": 1, "module: ended the process": 1,
                                "module: RuntimeError when imported": 1, "module: tests": 1}


def test_compiled_functions_without_a_signature_are_in_the_index_and_counted(compiled):
    lacking = [one.name for one in compiled.specs if "no_signature" in one.flags]
    assert "hypot" in lacking and "sqrt" not in lacking
    assert compiled.counts()["without a signature that Python can tell"] == len(lacking)


@pytest.mark.parametrize(("source", "said"), [
    ("import os; os._exit(7)", "ended the process that imported it (exit code 7)"),
    ("import sys; sys.exit('enough')", "does not import: SystemExit: enough"),
    ("import a_module_that_nobody_has", "does not import: ModuleNotFoundError"),
    ("1 / 0", "does not import: ZeroDivisionError"),
    ("_hidden = print; number = 3", "offers nothing public to call"),
])
def test_a_package_that_cannot_be_read_is_one_clear_line(tmp_path, source, said):
    with pytest.raises(UserError) as failure:
        inspected(written(tmp_path, source), progress=False)
    assert said in str(failure.value) and "\n" not in str(failure.value)


@pytest.mark.parametrize("name", ["no_such_package_anywhere", "scikit-learn", "./no/such/folder"])
def test_a_package_that_is_not_there_is_one_clear_line(name):
    with pytest.raises(UserError):
        inspected(name, progress=False)


def test_two_readings_give_the_same_index(package, shop):
    again = inspected(str(shop), progress=False)
    assert again.specs == package.specs and again.documentation == package.documentation


@pytest.mark.parametrize(("candidate", "category"), [
    ("add_item_to(1, 'top', amount=2)", "valid"), ("put_item_into(1, where='top')", "valid"),
    ("add_item_to(1)", INVALID_USAGE), ("add_item_to(item=1, where='top')", INVALID_USAGE),
    ("sort_by_weight()", INCORRECT_EXISTING), ("weight()", INCORRECT_EXISTING), ("add_items(1)", NONEXISTENT),
])
def test_a_call_is_judged_by_its_signature_under_any_of_its_names(index, candidate, category):
    judged = judge(candidate, "python/shop.shop.Basket.add_item_to", index, "python", "shop.BigBasket", "shop")
    assert judged.category == category


def test_the_closed_binding_takes_documented_keywords_only(index):
    valid = {keyword: judge(f"count_items(1, {keyword}=2)", "count_items", index, "python", "shop")
             for keyword in ("deep", "unit", "colour")}
    assert all(judged.valid for judged in valid.values())
    assert [judged.valid_closed for judged in valid.values()] == [True, True, False]


STATISTICS = [one for one in inspected("statistics", progress=False).specs
              if one.client == "statistics" and one.operation]


@given(st.sampled_from(STATISTICS), st.integers(0, 4), st.data())
def test_a_call_is_valid_iff_it_binds_to_the_function_itself(api, positional, data):
    names = [p.name for p in api.parameters] + ["unknown"]
    keywords = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    try:
        inspect.signature(getattr(statistics, api.name)).bind(*[0] * positional, **dict.fromkeys(keywords, 0))
        binds = True
    except TypeError:
        binds = False
    assert (bind_error(api, CallArguments(positional, tuple(keywords))) is None) == binds


@pytest.mark.parametrize(("docstring", "names"), [
    ("Do.\n\nParameters\n----------\na, b : int\n    Both.\n**more\n    Else.\n\nReturns\n-------\nc : int",
     {"a", "b", "more"}),
    ("Do.\n\nArgs:\n    a (int): one\n        or two: no\n    b: other\n\nReturns:\n    c: nothing", {"a", "b"}),
    ("Do.\n\n:param int a: one\n:keyword b: other\n:returns: c", {"a", "b"}),
    ("Do a: b.", set()),
])
def test_arguments_are_read_from_docstrings_of_every_usual_style(docstring, names):
    assert documented_names(docstring) == names


@pytest.mark.parametrize(("docstring", "description"), [
    ("f(a, b) -> int\n\nAdd ``a``\nto b.\n\nMore.", "Add a to b."), ("", ""), (".. note:: x\n\nAdd.", "Add."),
])
def test_a_description_is_the_first_paragraph_of_prose(docstring, description):
    assert description_of(docstring) == description


def test_a_module_that_does_not_return_ends_the_reading_process(tmp_path):
    written(tmp_path, "import time; time.sleep(60)")
    program = "from lookuplab.cloudapi import inspection; inspection.IMPORT_SECONDS = 1; inspection.main('written')"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True)
    assert done.returncode == -signal.SIGALRM
