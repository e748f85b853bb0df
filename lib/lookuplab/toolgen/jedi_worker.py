"""The process in which Jedi runs: one JSON request a line on standard input, one JSON answer a line on standard output.

Jedi is not thread-safe and may hang or crash on other people's code, so it runs nowhere else.
"""

import functools
import json
import os
import sys
from pathlib import Path

import jedi
from jedi.api.completion import Completion, _complete_getattr, get_flow_scope_node, get_user_context
from jedi.api.environment import InterpreterEnvironment
from jedi.inference.context import get_global_filters
from jedi.inference.gradual.conversion import convert_values
from jedi.inference.value import TreeInstance


class OneName(Completion):
    """Jedi's completion, restricted to one name: scopes are asked for it instead of for all that they hold.

    What makes the full list slow is the check, name by name, whether a definition can be reached. The check of one
    name does not depend on the others, so the answer to "is it among the completions" is the same.
    """

    wanted = ""

    def _complete_global_scope(self) -> list:
        context = get_user_context(self._module_context, self._position)
        scope = get_flow_scope_node(self._module_node, self._position)
        return [name for one in get_global_filters(context, self._position, scope) for name in one.get(self.wanted)]

    def _complete_trailer_for_values(self, values) -> list:
        context = get_user_context(self._module_context, self._position)
        names = []
        for value in values:
            names += self._of(value, context)
            if not value.is_stub() and isinstance(value, TreeInstance):
                names += _complete_getattr(context, value)
        for value in convert_values(values):
            if value not in values:
                names += self._of(value, context)
        return names

    def _of(self, value, context) -> list:
        return [name for one in value.get_filters(origin_scope=context.tree_node) for name in one.get(self.wanted)]


@functools.cache
def project(root: str) -> jedi.Project:
    """One project a repository. A package is imported by its own name, so the project begins where packages end."""
    folder = Path(root)
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return jedi.Project(folder)


@functools.cache
def environment() -> InterpreterEnvironment:
    """This interpreter itself: Jedi's default starts a further process and asks it attribute by attribute."""
    return InterpreterEnvironment()


def completions(root: str, file: str, text: str, line: int, column: int, wanted: str | None = None) -> list[list[str]]:
    """[name, what completing it would insert] of every completion, or of those that may be called ``wanted``."""
    script = jedi.Script(text, path=Path(root) / file, project=project(root), environment=environment())
    if wanted is None:
        return [[found.name, found.complete] for found in script.complete(line, column)]
    state = script._inference_state
    state.reset_recursion_limitations()
    asked = OneName(state, script._get_module_context(), script._code_lines, (line, column), script.get_signatures)
    asked.wanted = wanted
    return [[found.name, found.complete] for found in asked.complete()]


def main() -> None:
    """Answer until standard input ends. What code under analysis prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    print(json.dumps("ready"), file=answers, flush=True)
    for request in sys.stdin:
        try:
            answer = {"names": completions(**json.loads(request))}
        except Exception as error:  # whatever Jedi trips over is counted by the caller
            answer = {"failure": type(error).__name__}
        print(json.dumps(answer), file=answers, flush=True)
