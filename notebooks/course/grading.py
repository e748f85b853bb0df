"""Checks that an answer is the student's own work, for the hidden tests of the course."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from inspect import unwrap

# packages that contain solutions to the exercises
ANSWERS = (
    "lookuplab",
    "recipes",
    "sklearn",
    "statsmodels",
    "lookuplab_notebooks.toolgen.explorer",
    "lookuplab_notebooks.course.drawings",
)


@contextmanager
def by_hand(*given: Callable | property, without: Sequence[str] = ANSWERS) -> Iterator[None]:
    """Return a context manager for a block of code that must call nothing from the packages
    ``without``, except the functions that the exercise has ``given``.

    The interpreter reports every call, so an alias, a wrapper or an import inside a function makes
    no difference. Given functions may call anything, and the block may import modules. At the end
    of the block, an AssertionError names the first forbidden call. The check finds shortcuts but
    not sabotage, because it cannot see code that was copied or that runs in another process.
    """
    specs = filter(None, map(find_spec, without))
    places = tuple(
        path + os.sep if os.path.isdir(path) else path
        for spec in specs
        for path in spec.submodule_search_locations or [spec.origin]
    )
    free = {unwrap(getattr(one, "fget", one)).__code__ for one in given} | {sys._getframe().f_code}
    called = []

    def watch(frame, event, _):
        code = frame.f_code
        caller = frame.f_back
        # some events are no calls by the student: an import runs the code of the module and,
        # since Python 3.14, the annotations of the module's dataclasses
        if event != "call" or code in free or code.co_name in ("<module>", "__annotate__"):
            return
        by_kit = caller is not None and caller.f_code.co_filename.startswith(places)
        if code.co_filename.startswith(places) and not by_kit:
            called.append(f"{frame.f_globals['__name__']}.{code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
        if sys.getprofile() is not watch:
            called.append("sys.setprofile")
    finally:
        sys.setprofile(before)
    assert not called, f"write it yourself: the answer calls {called[0]}"
