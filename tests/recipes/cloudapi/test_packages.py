"""Tests the benchmark of a package of your own: its index, how calls are judged, frequencies and
tasks.
"""

import ast
import textwrap

import pytest
from doors import call, refused

from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiSpec, load_index
from lookuplab.cloudapi.tasks import load_tasks
from lookuplab.cloudapi.validity import bind_error, parse_call
from lookuplab.paths import write_text
from recipes.cloudapi import packages
from recipes.cloudapi.frequency import read_frequencies
from recipes.cloudapi.packages import offered

# a package with everything that makes packages hard to read
FILES = {
    "__init__.py": '''
        import sys
        print("a package may print when it is imported")
        print("and complain", file=sys.stderr)
        from importlib import import_module
        from .stock import Basket, BigBasket, StockError, count_items, put_away

        _structure = {"_vehicles": ["Lorry"]}

        def __getattr__(name):
            if name in ("Truck", *_structure["_vehicles"]):
                return getattr(import_module("shop._vehicles"), name.replace("Truck", "Van"))
            if name == "tidy_up_old":
                import warnings
                warnings.warn("tidy_up_old is deprecated", DeprecationWarning)
                return put_away
            if name == "late_arrival":
                def late_arrival(date, *, note=""):
                    """Report a delivery that comes too late."""
                late_arrival.__module__ = __name__
                return late_arrival
            raise AttributeError(name)

        def __dir__():
            return [*globals(), "late_arrival", "tidy_up_old", "Truck", "Lorry"]
    ''',
    "stock.py": '''
        from functools import cached_property
        from json import dumps  # imported, not offered
        from typing import Protocol

        class StockError(Exception):
            """Something is missing."""

        class _Shelf:
            def sort_by_weight(self, reverse=False):
                """Sort what lies on the shelf."""

        class Basket(_Shelf):
            """A basket."""
            def __init__(self, owner, size=3): pass
            def add_item_to(self, item, /, where, *, amount=1):
                """Put a thing into it.

                Parameters
                ----------
                item : object
                    What.
                where : str
                """
            put_item_into = add_item_to
            @classmethod
            def from_text(cls, text):
                """Read a basket."""
            @cached_property
            def weight(self): return 1
            def _secret(self): pass

        class Carrier(Protocol):
            def carry_it_home(self, basket): ...

        class Porter(Carrier):
            """Carries."""

        class BigBasket(Basket):
            """A big one."""
            def lift_with_crane(self, crane):
                """Lift it from the ground."""

        def count_items(basket, *, deep=False, **options):
            """Return the number of things in the basket.

            Args:
                basket (Basket): which.
                unit (str): what to count in.
            """

        def put_away(*args, **kwargs):
            """Store what is left."""

        def _hidden(): pass
    ''',
    "_vehicles.py": """
        class Van:
            def add_item_to(self, item):
                '''Put a thing into it.'''
        class Lorry: ...
    """,
    "till.py": """
        from collections import OrderedDict
        from .stock import Basket, count_items  # for its own use
        from .externals.borrowed import borrow_some_thing
        from .catalogue import list_all_things
        def take_all_money():
            '''Take all the money out of the till.'''
    """,
    "catalogue/__init__.py": "__all__ = ['list_all_things']; from .._pages import list_all_things",
    "_pages.py": "def list_all_things(kind):\n    '''List what is there.'''",
    "externals/borrowed.py": "def borrow_some_thing(): ...",
    "setup.py": "from pathlib import Path; Path(__file__).with_name('ran').touch()",
    "stock_test.py": "def do_not_ask_me(): ...",
    "support.py": "import unittest\nclass ShopCase(unittest.TestCase): ...",
    "exits.py": "import sys; sys.exit(3)",
    "raises.py": "raise RuntimeError('not here')",
    "_private.py": "def not_offered(): pass",
    "tests/__init__.py": "",
    "tests/test_stock.py": """
        import shop
        from shop import Basket as B
        from shop.stock import count_items as how_many

        def test_everything():
            basket = B("me")
            basket.add_item_to(1, "top")
            basket.put_item_into(2, "top")
            shop.count_items(basket)
            how_many(basket)
            basket = unknown()
            basket.add_item_to(3, "top")
    """,
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Return the folder of the small package, which is written once."""
    folder = tmp_path_factory.mktemp("sources") / "shop"
    for name, text in FILES.items():
        write_text(folder / name, textwrap.dedent(text))
    return folder


@pytest.fixture(scope="module")
def made(shop, tmp_path_factory):
    return packages.build(str(shop), tmp_path_factory.mktemp("shop api"))


@pytest.fixture(scope="module")
def index(made):
    return made.index


def spec(index, name):
    return index.by_id[f"python/shop.shop.{name}"]


def test_public_names_are_listed_once_under_their_shortest_path(index):
    found = {one.id.removeprefix("python/shop.shop.") for one in index.specs}
    names = """
        Basket Basket.add_item_to Basket.put_item_into Basket.sort_by_weight Basket.from_text
        BigBasket BigBasket.lift_with_crane StockError count_items put_away late_arrival
        Truck Truck.add_item_to Lorry
        stock.Carrier stock.Carrier.carry_it_home stock.Porter
        till.take_all_money catalogue.list_all_things
    """  # the third line comes from a private module, through __getattr__
    assert found == {*names.split()}


@pytest.mark.usefixtures("made")
def test_what_installs_the_package_is_not_run(shop):
    assert not (shop / "ran").exists()


def test_a_name_that_two_classes_have_is_asked_for_on_either(made):
    asked = {task.target.removeprefix("python/shop.shop.") for task in made.tasks}
    assert {"Basket.add_item_to", "Truck.add_item_to"} <= asked


def test_arguments_are_required_or_optional_as_the_signature_says(index):
    method = spec(index, "Basket.add_item_to")
    assert (method.required, method.optional) == (("item", "where"), ("amount",))
    assert not bind_error(method, parse_call("f(1, where='')"))
    assert bind_error(method, parse_call("f(item=1, where='')")), "item is positional"
    assert spec(index, "Basket").required == ("owner",)  # without self


def test_exceptions_and_class_methods_exist_but_are_no_operations(index):
    for name in ("StockError", "Basket.from_text"):
        assert not spec(index, name).operation


def test_signatures_that_take_anything_or_are_unknown_are_flagged(index):
    assert "open_signature" in spec(index, "put_away").flags
    flagged = [one.name for one, _ in offered("math")[0] if "open_signature" in one.flags]
    assert "log" in flagged and "sqrt" not in flagged


def test_what_cannot_be_read_or_asked_for_is_counted(made):
    for error in ("SystemExit", "RuntimeError"):
        assert made.left_out[f"modules whose import raises {error}"] == 1
    reasons = sum(n for reason, n in made.left_out.items() if reason.startswith("operations"))
    asked = len({task.target for task in made.tasks})
    assert made.share.startswith(f"{asked} of {reasons + asked} operations can be")
    missing = "no task asks for an API of {} frequency".format
    assert made.warnings == [missing("high"), missing("medium")]


def test_prompts_are_python_that_ends_before_the_call(made):
    for task in made.tasks:
        ast.parse(task.prompt + "name()")
        assert task.prompt.endswith(".")
    method = next(task.prompt for task in made.tasks if "Basket.add_item_to" in task.id)
    assert method.startswith("from shop import Basket\n") and "client = Basket(*client_" in method
    inside = task_prompt(ApiSpec("python", "shop", "shop.stock", "", ()), "Count what is there")
    assert inside == "from shop import stock\n\n# Count what is there\nresult = stock."
    outside = task_prompt(ApiSpec("python", "shop", "shop", "", ()), "Count")
    assert outside == "import shop\n\n# Count\nresult = shop."


def test_names_are_counted_as_calls_and_definitions_in_the_package_and_its_tests(index):
    file = index.documentation.with_name(packages.FREQUENCIES)
    names = read_frequencies(file).count_name
    assert names["python/shop.shop.Basket.add_item_to"] == 4  # two definitions and two calls


def test_the_command_writes_what_every_other_command_reads(made, shop, tmp_path):
    done = call(shop, "-o", tmp_path, main=packages.main)
    assert done.exit_code == 0, done.output
    assert load_index(tmp_path / "index.jsonl.xz").specs == made.index.specs
    assert load_tasks(tmp_path / packages.TASKS) == made.tasks


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def run(): ...\ndef walk_home(): ...", "name is a single word, 1 .* makes a sentence"),
        ("import sys; sys.exit('enough')", "dumb does not import: SystemExit: enough"),
        ("import nothing_like_this", "dumb does not import: ModuleNotFoundError"),
        ("import os; os._exit(7)", "dumb does not import: Python stops after dumb: exit code 7"),
    ],
)
def test_a_package_that_gives_no_task_is_one_clear_line(tmp_path, source, said):
    (tmp_path / "dumb.py").write_text(source)
    with refused(said):
        packages.build(str(tmp_path / "dumb"), tmp_path)


def test_a_compiled_package_needs_a_corpus(tmp_path):
    with refused("no Python sources to count in"):
        packages.build("math", tmp_path)
