"""A package of the tests' own, with everything that makes packages hard to read."""

FILES = {
    "__init__.py": '''
        import sys
        print("a package may print when it is imported")
        print("and complain", file=sys.stderr)
        from .stock import Basket, BigBasket, StockError, count_items, put_away

        def __getattr__(name):
            if name == "late_arrival":
                def late_arrival(date, *, note=""):
                    """Report a delivery that comes too late."""
                late_arrival.__module__ = __name__
                return late_arrival
            raise AttributeError(name)

        def __dir__():
            return [*globals(), "late_arrival"]
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
