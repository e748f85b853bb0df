"""Which names one Python file calls or defines, and which of the calls are made on a known client.

A call is *bound* when its object was assigned, in scope, from ``boto3.client("svc")`` (or ``session.client``,
``create_client``), or from the construction of an Azure client class or one of its operation groups. Resources,
clients that come out of functions, and clients that are handed in stay unbound: ``count_bound`` is a lower bound.
"""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

CALL = re.compile(r"\b([^\W\d]\w*)\s*\(")
# More than CALL, so that no call escapes the parser: "name \<line break> (", "(client.name)(".
MAYBE_CALL = re.compile(r"\b([^\W\d]\w*)[\s\\)]*\(")

Place = tuple[str, str, str]  # provider, service, client: the first three parts of an API's id


@dataclass
class Usage:
    """``names``: calls and definitions by name. ``bound``: calls by (provider, service, client, name).

    ``parsed`` is False for a file that does not parse as Python 3: its names are counted by a regular expression, and
    nothing is bound.
    """

    names: Counter[str] = field(default_factory=Counter)
    bound: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    parsed: bool = True


def usage(text: str, names: frozenset[str], clients: Mapping[str, Place]) -> Usage:
    """Count what ``text`` uses of ``names``.

    ``clients`` maps what a client is made with to its place: a boto3 service name, an Azure class name, and
    ``ManagementClass.attribute`` for an operation group, the attribute without underscores.
    """
    if names.isdisjoint(MAYBE_CALL.findall(text)):
        return Usage()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        reader = _Reader(names, clients)
        reader.read(tree)
        return reader.usage
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Usage(Counter(name for name in CALL.findall(text) if name in names), parsed=False)


class _Reader(ast.NodeVisitor):
    """Walks a file in order with a stack of scopes (dotted expression -> client's place, or None: something else).

    Bodies of functions are read when the scope around them is complete, as they run later.
    """

    def __init__(self, names: frozenset[str], clients: Mapping[str, Place]):
        self.usage = Usage()
        self._names = names
        self._clients = clients
        self._scopes: list[dict[str, Place | None]] = []

    def read(self, tree: ast.Module) -> None:
        self._deferred: list[tuple[ast.AST, list[dict[str, Place | None]]]] = [(tree, [])]
        while self._deferred:
            node, around = self._deferred.pop(0)
            self._scopes = [*around, {}]
            if isinstance(node, ast.Lambda):
                self.visit(node.body)
                continue
            for statement in node.body:
                self.visit(statement)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        if not isinstance(node, ast.Lambda):
            self._count(node.name)
            for outside in [*node.decorator_list, *filter(None, [node.returns])]:
                self.visit(outside)
        self.visit(node.args)  # defaults belong to the scope around
        self._deferred.append((node, list(self._scopes)))

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for outside in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(outside)
        # ``self.s3 = boto3.client("s3")`` in one method serves all others, whatever their order.
        own = [n for n in ast.walk(node) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Attribute)]
        shared = {ast.unparse(n.targets[0]): self._client(n.value) for n in own}
        self._scopes.append({name: place for name, place in shared.items() if place})
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)
            self._bind(node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._bind(node.target, node.value)

    def visit_withitem(self, node: ast.withitem) -> None:
        self.visit(node.context_expr)
        if node.optional_vars:
            self._bind(node.optional_vars, node.context_expr)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name | ast.Attribute):
            self._scopes[-1][ast.unparse(target)] = self._client(value)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            self._count(node.func.attr)
            if node.func.attr in self._names and (place := self._client(node.func.value)):
                self.usage.bound[*place, node.func.attr] += 1
        elif isinstance(node.func, ast.Name):
            self._count(node.func.id)
        self.generic_visit(node)

    def _count(self, name: str) -> None:
        if name in self._names:
            self.usage.names[name] += 1

    def _client(self, value: ast.expr) -> Place | None:
        """The place of the client that an expression is, if that shows in this file."""
        if isinstance(value, ast.NamedExpr):
            return self._client(value.value)
        if isinstance(value, ast.Call):
            return self._constructed(value)
        if not isinstance(value, ast.Name | ast.Attribute):
            return None
        name = ast.unparse(value)
        known = next((scope[name] for scope in reversed(self._scopes) if name in scope), None)
        if known is None and isinstance(value, ast.Attribute) and (group := self._client(value.value)):
            return self._clients.get(f"{group[2]}.{value.attr.replace('_', '')}")  # compute_client.virtual_machines
        return known

    def _constructed(self, call: ast.Call) -> Place | None:
        function = call.func
        called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if called in ("client", "create_client"):
            keywords = {keyword.arg: keyword.value for keyword in call.keywords}
            service = call.args[0] if call.args else keywords.get("service_name")
            place = self._clients.get(service.value) if _is_text(service) else None
            return place if place and place[0] == "aws" else None
        if called.startswith("from_") and isinstance(function, ast.Attribute):  # BlobClient.from_connection_string
            inner = function.value
            called = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
        place = self._clients.get(called)
        return place if place and place[0] == "azure" else None


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
