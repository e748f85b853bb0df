"""Single edits of a failed answer, to find out whether one of them makes it pass its test.

An answer that one small edit repairs is "almost correct" in a way that can be executed. The
material of an edit comes from the reference: an argument, a name, an index, at the place where the
two differ. ``LARGEST`` bounds it, so that no edit inserts the whole answer.
"""

import ast
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from lookuplab.errors import UNPARSABLE
from lookuplab.stackoverflow.ds1000 import INSERT, Problem, indented, template

MOST = 60  # edits per answer
LARGEST = 12  # nodes of the tree that an edit may take from the reference
LAYERS = ast.Call | ast.Attribute | ast.Subscript
MODULES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "tf": "tensorflow"}
# expressions around a result that answers often lack
AROUND = "list(_)|np.array(_)|_.values|_.tolist()|_[::-1]|_.T|-_|_.reset_index(drop=True)|_[0]"
OPPOSITES = [
    *((ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)),
    *((ast.Eq, ast.NotEq), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr)),
    *((ast.Mult, ast.MatMult), (ast.In, ast.NotIn), (ast.And, ast.Or)),
]


class Slot(NamedTuple):
    """A place in a tree: a field of a node, or an entry of a field that is a list."""

    node: ast.AST
    field: str
    at: int | None = None

    def get(self) -> Any:
        value = getattr(self.node, self.field)
        return value if self.at is None else value[self.at]

    def put(self, value: Any) -> None:
        if self.at is None:
            setattr(self.node, self.field, value)
        else:
            getattr(self.node, self.field)[self.at] = value


Edit = Callable[[], str | None]


def single_edits(problem: Problem, answer: str, most: int = MOST) -> list[str]:
    """Return the answer with one edit each, in order, without repetition, at most ``most`` texts.

    If the answer does not compile where the test inserts it, the edits repair its syntax, otherwise
    they change its tree.
    """
    if compiles(problem, answer):
        texts = _edits_of_tree(problem, answer)
    else:
        texts = (text for text in repairs(problem, answer) if compiles(problem, text))
    seen = dict.fromkeys(text for text in texts if text.strip() != answer.strip())
    return [*islice(seen, most)]


def compiles(problem: Problem, answer: str) -> bool:
    """Return whether an answer compiles where the test inserts it."""
    text = template(problem.context).replace(INSERT, answer) or answer
    try:
        compile(text, "answer", "exec")
    except UNPARSABLE:
        return False
    return True


def repairs(problem: Problem, answer: str) -> Iterator[str]:
    """Yield the repaired versions of an answer that does not compile. A repair concerns its
    indentation, text around the code, brackets, or a single token.
    """
    yield indented(problem, answer)
    yield textwrap.dedent(answer)
    yield indented(problem, textwrap.dedent(answer))
    yield indented(problem, answer.lstrip())
    bare = re.sub(r"</?code>|```\w*|^(BEGIN|END) SOLUTION.*|^# SOLUTION.*", "", answer, flags=re.M)
    yield bare
    yield indented(problem, bare)
    lines = answer.rstrip().split("\n")
    for left in range(1, min(len(lines), 12)):
        yield "\n".join(lines[:-left])
        yield "\n".join(lines[left:])
    for number, line in enumerate(lines):
        for new in (line + ")", line + "]", line + ":", line.rstrip(")"), line[:-1], "", "#"):
            yield "\n".join([*lines[:number], new, *lines[number + 1 :]])


def _edits_of_tree(problem: Problem, answer: str) -> Iterator[str]:
    tree, margin = parsed(answer)
    reference, _ = parsed(problem.reference)
    limit = min(LARGEST, max(3, size(reference) // 2))
    kinds = [
        results(tree, reference, problem),
        partings(Slot(tree, "body"), reference.body, limit),
        arguments(tree, reference, limit),
        layers(tree, reference, limit),
        leaves(tree, reference),
    ]
    found: list[list[str]] = []
    for kind in kinds:
        found.append([])
        for _ in kind:  # the tree is edited between two steps
            try:
                text = ast.unparse(ast.fix_missing_locations(tree))
            except (*UNPARSABLE, AttributeError, TypeError):
                continue
            found[-1].append(textwrap.indent(text, margin))
    # in turn, so that no kind uses up all allowed edits
    yield from (text for turn in zip_longest(*found) for text in turn if text is not None)


def parsed(code: str) -> tuple[ast.Module, str]:
    """Return the tree of code that compiles, of a module or of a function's body, and its
    indentation.
    """
    try:
        return ast.parse(code), ""
    except UNPARSABLE:
        lines = [line for line in code.split("\n") if line.strip()]
        margin = lines[0][: len(lines[0]) - len(lines[0].lstrip())] if lines else ""
        tree = ast.parse(f"def f():\n{code}") if margin else ast.parse(f"def f():\n {code}")
        return ast.Module(tree.body[0].body, []), margin  # type: ignore[attr-defined]


@contextmanager
def edited(slot: Slot, new: Any) -> Iterator[None]:
    """Put ``new`` into the slot while the block runs."""
    old = slot.get()
    slot.put(new)
    try:
        yield
    finally:
        slot.put(old)


def slots(tree: ast.AST) -> Iterator[Slot]:
    """Yield the slots of all nodes of a tree, except contexts and operators."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                yield from (
                    Slot(node, field, at)
                    for at, item in enumerate(value)
                    if isinstance(item, ast.AST)
                )
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                yield Slot(node, field)


def size(node: Any) -> int:
    """Return the number of nodes of a tree that stand for something in the code."""
    kinds = ast.expr | ast.stmt | ast.keyword | ast.operator
    return sum(isinstance(each, kinds) for each in ast.walk(node))


def same(first: Any, second: Any) -> bool:
    """Return whether two trees, lists of trees or values are alike."""
    if isinstance(first, list) and isinstance(second, list):
        return [*map(_dump, first)] == [*map(_dump, second)]
    return bool(_dump(first) == _dump(second))


def _dump(node: Any) -> Any:
    return ast.dump(node) if isinstance(node, ast.AST) else node


def partings(slot: Slot, other: Any, limit: int) -> Iterator[None]:
    """Yield once for each edit that takes a difference from the reference, while the tree has it: a
    replacement, an addition, or a deletion.
    """
    mine = slot.get()
    if same(mine, other):
        return
    if isinstance(mine, list) and isinstance(other, list):
        yield from _of_lists(slot, mine, other, limit)
        return
    if not isinstance(mine, ast.AST) or not isinstance(other, ast.AST):
        with edited(slot, other):
            yield
        return
    whole = ast.Module | ast.Assign | ast.Return | ast.Expr
    if size(other) <= limit and not isinstance(slot.node, whole):
        with edited(slot, other):
            yield
    if type(mine) is type(other):
        for field in mine._fields:
            if field not in ("ctx", "kind", "type_comment"):
                yield from partings(Slot(mine, field), getattr(other, field), limit)
    if (core := core_of(other)) and isinstance(mine, ast.expr):  # the reference has one layer more
        inner = core.get()
        with edited(core, mine), edited(slot, other):
            yield
        if not same(mine, inner) and type(mine) is not type(other):
            yield from partings(slot, inner, limit)
    if (core := core_of(mine)) and isinstance(other, ast.expr):  # the reference has one layer less
        with edited(slot, core.get()):
            yield
        if type(mine) is not type(other):
            yield from partings(core, other, limit)


def _of_lists(slot: Slot, mine: list[Any], other: list[Any], limit: int) -> Iterator[None]:
    matcher = SequenceMatcher(None, [*map(_dump, mine)], [*map(_dump, other)], autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        old, new = mine[start:end], other[first:last]
        if len(old) != len(new):
            for at in range(first, last):  # one of them is missing
                is_last = isinstance(other[at], ast.stmt) and at == len(other) - 1
                if isinstance(other[at], ast.AST) and size(other[at]) <= limit and not is_last:
                    with edited(slot, [*mine[:start], other[at], *mine[start:]]):
                        yield
                    with edited(slot, [*mine[:end], other[at], *mine[end:]]):
                        yield
            for at in range(start, end):  # or superfluous
                with edited(slot, [*mine[:at], *mine[at + 1 :]]):
                    yield
        count = min(len(old), len(new))
        for back in range(1, count + 1):  # also aligned at their ends
            yield from partings(Slot(slot.node, slot.field, end - back), other[last - back], limit)


def core_of(node: Any) -> Slot | None:
    """Return the slot of the object of a call, attribute, index or sign: ``x`` in ``f(x)``,
    ``x.f()``, ``x.f``, ``x[i]`` and ``-x``.
    """
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
            return Slot(node.func, "value")
        return Slot(node, "args", 0) if node.args else None
    if isinstance(node, ast.Attribute | ast.Subscript):
        return Slot(node, "value")
    return Slot(node, "operand") if isinstance(node, ast.UnaryOp) else None


def _is_module(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in {
        *MODULES,
        "scipy",
        "torch",
        "sklearn",
        "stats",
    }


def arguments(tree: ast.AST, reference: ast.AST, limit: int) -> Iterator[None]:
    """Yield for each edit of a call's arguments: one less, one more or another one from the
    reference's calls, or two exchanged.
    """
    theirs = [node for node in ast.walk(reference) if isinstance(node, ast.Call)]
    keywords = [each for call in theirs for each in call.keywords if size(each) <= limit]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        args = call.args
        known = {each.arg for each in call.keywords}
        for new in keywords:
            kept = [each for each in call.keywords if each.arg != new.arg]
            if new.arg not in known or name_of(call) in map(name_of, theirs):
                with edited(Slot(call, "keywords"), [*kept, new]):
                    yield
        for other in theirs:
            if name_of(other) == name_of(call):
                for at, given in enumerate(other.args):
                    if size(given) <= limit and not (at < len(args) and same(args[at], given)):
                        with edited(Slot(call, "args"), [*args[:at], given, *args[at + 1 :]]):
                            yield
                        with edited(Slot(call, "args"), [*args[:at], given, *args[at:]]):
                            yield
        for at in range(len(args) - 1):
            with edited(Slot(call, "args"), [*args[:at], args[at + 1], args[at], *args[at + 2 :]]):
                yield
        for at in range(len(call.keywords)):
            with edited(Slot(call, "keywords"), [*call.keywords[:at], *call.keywords[at + 1 :]]):
                yield
        for at in range(len(args)):
            with edited(Slot(call, "args"), [*args[:at], *args[at + 1 :]]):
                yield


def name_of(call: ast.Call) -> str:
    """Return the last name of the callable in a call: ``f`` for ``x.f()``."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def layers(tree: ast.Module, reference: ast.Module, limit: int) -> Iterator[None]:
    """Yield for each edit of a layer: the answer's result inside one more call, attribute or index,
    from the reference or from AROUND; and any expression without one of its layers.
    """
    places = [
        Slot(node, "value")
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.Return) and node.value
    ][::-1]
    wraps = [node for node in ast.walk(reference) if isinstance(node, LAYERS) and core_of(node)]
    for place in places[:3]:
        for layer in wraps:
            core = core_of(layer)
            assert core
            with edited(core, ast.Constant(0)):
                is_small = size(layer) <= limit
            if is_small:
                mine = place.get()
                with edited(core, mine), edited(place, layer):
                    yield
    for text in AROUND.split("|"):
        for place in places[:1]:
            around = ast.parse(text, mode="eval").body
            hole = next(each for each in slots(around) if getattr(each.get(), "id", "") == "_")
            with edited(hole, place.get()), edited(place, around):
                yield
    for place in [*slots(tree)]:
        if (core := core_of(place.get())) and not isinstance(place.node, LAYERS):
            with edited(place, core.get()):
                yield


def results(tree: ast.Module, reference: ast.Module, problem: Problem) -> Iterator[None]:
    """Yield for each edit of the result: the answer's last value under the name that the reference
    binds, returned, or by a call of the answer's function; one statement removed; a missing import
    added.
    """
    body = tree.body
    whole = Slot(tree, "body")
    wanted = names_bound(reference)[-1:]
    returns = any(isinstance(node, ast.Return) for node in reference.body)
    last = body[-1] if body else None
    value = getattr(last, "value", None)
    bound = names_bound(tree)
    ends: list[ast.stmt] = []
    if isinstance(value, ast.expr):
        taken = (
            value.args[0]
            if isinstance(value, ast.Call) and name_of(value) == "print" and value.args
            else value
        )
        if returns:
            ends.append(ast.Return(taken))
        ends += [_assign(name, taken) for name in wanted]
    for end in ends:
        with edited(whole, [*body[:-1], end]):
            yield
    if bound:
        name = ast.Name(bound[-1], ast.Load())
        more: list[ast.stmt] = [_assign(one, name) for one in wanted if one not in bound]
        if returns and not isinstance(last, ast.Return):
            more.append(ast.Return(name))
        for end in more:
            with edited(whole, [*body, end]):
                yield
    for node in body:
        if isinstance(node, ast.FunctionDef):
            args: list[ast.expr] = [ast.Name(each.arg, ast.Load()) for each in node.args.args]
            called = ast.Call(ast.Name(node.name, ast.Load()), args, [])
            for one in wanted:
                with edited(whole, [*body, _assign(one, called)]):
                    yield
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for short in sorted(used & MODULES.keys()):
        if not re.search(rf"\bas {short}\b", template(problem.context)):
            with edited(whole, [*ast.parse(f"import {MODULES[short]} as {short}").body, *body]):
                yield
    for node in reference.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            with edited(whole, [node, *body]):
                yield
    for at in range(len(body)) if len(body) > 1 else ():
        with edited(whole, [*body[:at], *body[at + 1 :]]):
            yield


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=1)


def names_bound(tree: ast.Module) -> list[str]:
    """Return the names that the top-level statements assign, in order."""
    targets = [each for node in tree.body if isinstance(node, ast.Assign) for each in node.targets]
    return [each.id for each in targets if isinstance(each, ast.Name)]


def leaves(tree: ast.AST, reference: ast.AST) -> Iterator[None]:
    """Yield for each edit of a leaf: a name, attribute or constant from the reference in place of
    one that the reference does not have; an operator reversed; an integer increased or decreased by
    one; a boolean inverted.
    """
    theirs = [*ast.walk(reference)]
    for kind, field in ((ast.Attribute, "attr"), (ast.Name, "id")):
        others = dict.fromkeys(getattr(node, field) for node in theirs if isinstance(node, kind))
        for node in [*ast.walk(tree)]:
            if isinstance(node, kind) and getattr(node, field) not in others:
                for new in others:
                    with edited(Slot(node, field), new):
                        yield
    constants = [node.value for node in theirs if isinstance(node, ast.Constant)]
    for place in [*slots(tree)]:
        node = place.get()
        if isinstance(node, ast.Constant):
            mine = node.value
            alike = [each for each in constants if type(each) is type(mine) and each != mine]
            if isinstance(mine, bool):
                alike = [not mine]
            elif isinstance(mine, int):
                alike += [1 - mine, mine + 1, mine - 1, -mine]
            for value in dict.fromkeys(alike):
                with edited(Slot(node, "value"), value):
                    yield
        for pair in OPPOSITES:
            for old, new in (pair, pair[::-1]):
                if type(node) is old:
                    with edited(place, new()):
                        yield
