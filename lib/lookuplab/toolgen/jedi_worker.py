"""The process in which Jedi runs: one JSON request a line on standard input, one JSON answer a line on standard output.

Jedi is not thread-safe and may hang or crash on other people's code, so it runs nowhere else.
"""

import functools
import gc
import json
import os
import signal
import sys
from pathlib import Path
from unittest.mock import patch

import jedi
from jedi.api import completion
from jedi.api.completion import Completion, get_flow_scope_node, get_user_context
from jedi.api.environment import InterpreterEnvironment
from jedi.api.helpers import higher_recursion_limit
from jedi.inference.context import get_global_filters
from jedi.inference.gradual.conversion import convert_values
from jedi.inference.value import TreeInstance
from parso.cache import parser_cache

from lookuplab import python_sources
from lookuplab.toolgen import jedi_kept


class OneName(Completion):
    """Jedi's completion, restricted to one name: scopes are asked for it instead of for all that they hold.

    What makes the full list slow is the check, name by name, whether a definition can be reached. The check of one
    name does not depend on the others, so the answer to "is it among the completions" is the same.
    """

    def __init__(self, *args, wanted: str):
        super().__init__(*args)
        self._wanted = wanted

    def _complete_global_scope(self) -> list:
        context = get_user_context(self._module_context, self._position)
        scope = get_flow_scope_node(self._module_node, self._position)
        return [name for one in get_global_filters(context, self._position, scope) for name in one.get(self._wanted)]

    def _complete_trailer_for_values(self, values) -> list:
        # Jedi follows a __getattr__ that hands on to another object with the same function, found as a global
        with patch.object(completion, "complete_trailer", self._of_values):
            return self._of_values(get_user_context(self._module_context, self._position), values)

    def _of_values(self, context, values) -> list:
        """As Jedi's complete_trailer. The first name decides, so the search ends there."""
        for value in values:
            if found := self._of(value, context):
                return found
            if not value.is_stub() and isinstance(value, TreeInstance):
                if found := completion._complete_getattr(context, value):
                    return found
        for value in convert_values(values):
            if value not in values and (found := self._of(value, context)):
                return found
        return []

    def _of(self, value, context) -> list:
        return [name for one in value.get_filters(origin_scope=context.tree_node) for name in one.get(self._wanted)]

    def _complete_inherited(self, is_function: bool = True) -> list:
        """As Jedi's, which offers what base classes define inside the body of a class, methods or all else."""
        leaf = self._module_node.get_leaf_for_position(self._position, include_prefixes=True)
        node = leaf.search_ancestor("classdef")
        if node is None or node.start_pos[1] >= leaf.start_pos[1]:
            return []
        filters = self._module_context.create_value(node).get_filters(is_instance=True)
        next(filters)  # the class itself
        names = [name for one in filters for name in one.get(self._wanted)]
        return [name for name in names if (name.api_type == "function") == is_function]


class Repository(jedi.Project):
    """Jedi's project: the repository, Python's own library and the stated sources can be imported, and nothing else.

    A package is imported by its own name, so a root that is one is found from where packages end. Jedi also looks
    through the project for the callers of a function, to tell what its parameters are: through the repository alone,
    not through what lies beside a package.
    """

    def __init__(self, root: str):
        outside = folder = Path(root).absolute()
        while (outside / "__init__.py").is_file() and outside != outside.parent:
            outside = outside.parent
        super().__init__(outside, sys_path=python_sources.search_path())
        self._root = folder

    @property
    def path(self) -> Path:
        return self._root


@functools.cache
def project(root: str) -> Repository:
    """One project a repository."""
    return Repository(root)


@functools.cache
def environment() -> InterpreterEnvironment:
    """This interpreter itself: Jedi's default starts a further process and asks it attribute by attribute."""
    return InterpreterEnvironment()


def completions(root: str, file: str, text: str, line: int, column: int, wanted: str | None = None) -> list[list[str]]:
    """[name, what completing it would insert] of every completion, or of those that may be called ``wanted``."""
    path = (Path(root) / file).absolute()
    with jedi_kept.buffer(path):
        script = jedi.Script(text, path=path, project=project(root), environment=environment())
        if wanted is None:
            return [[found.name, found.complete] for found in script.complete(line, column)]
        state = script._inference_state
        with higher_recursion_limit():
            asked = OneName(state, script._get_module_context(), script._code_lines, (line, column),
                            script.get_signatures, wanted=wanted)
            return [[found.name, found.complete] for found in asked.complete()]


class TooLong(BaseException):
    """The time is up. No Exception: Jedi must not catch it."""


def _too_long(*_: object) -> None:
    raise TooLong


def answer(question: dict, limit: float) -> dict:
    """The completions, or the reason why there are none; ``limit``: seconds of this process's own computing time."""
    try:
        try:
            # once more each tenth of a second, as Python drops what is raised in a destructor
            signal.setitimer(signal.ITIMER_PROF, max(limit, 1e-6), 0.1)
            return {"names": completions(**question)}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TooLong:
        parser_cache.clear()  # parso edits trees in place, and may have been at it
        return {"failure": "timed out"}
    except Exception as error:  # whatever Jedi trips over is counted by the caller
        return {"failure": f"error in Jedi: {type(error).__name__}"}


def main() -> None:
    """Answer until standard input ends. What code under analysis prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    gc.set_threshold(100_000, 20)  # Python's own 700 would look through the kept syntax trees for a fifth of the time
    jedi_kept.install()
    python_sources.restrict()
    signal.signal(signal.SIGPROF, _too_long)
    print(json.dumps("ready"), file=answers, flush=True)
    for request in sys.stdin:
        print(json.dumps(answer(**json.loads(request))), file=answers, flush=True)
