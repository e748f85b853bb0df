"""Tasks in the style of CloudAPIBench for any Python package (Section 2.2, Appendix A.2 steps 5 to 8).

What the paper does for two cloud providers, with two differences: comments are reworded from docstrings, so more verbs
are known, and each frequency class gives as many tasks as it has, at most a chosen number, since a package may have no
frequent or no rare API at all.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lookuplab.cloudapi.benchmark import (
    COMPOSITION,
    PROMPTS_PER_API,
    Task,
    frequency_class,
    make_task,
    numbered,
    sample,
)
from lookuplab.cloudapi.code_sources import SourceFile, source_files
from lookuplab.cloudapi.comments import VERBS, distinct_comments, intent
from lookuplab.cloudapi.packages import Package
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec
from lookuplab.errors import UserError

PER_CLASS = 100
REASONS = {  # flag -> why an operation is not asked for; the first that holds counts
    "no_signature": "no signature: validity cannot be judged",
    "open_signature": "signature that takes anything: every call is valid",
    "generic_name": "name of one word: counts of it mean little",
    "shared_name": "name of another API of the index, too: the counts cannot tell them apart",
}
WORDLESS = "no description that begins with a known verb"
LEAKING = "description that gives the name away in every wording"
# Verbs of libraries, as in ``comments.VERBS``: those that cloud SDKs do not use, and those that mean something else.
MORE_VERBS = VERBS | {
    "build": ("build", "construct", "make", "assemble"),
    "calculate": ("calculate", "compute", "work out"),
    "check": ("check", "test", "find out", "determine"),
    "close": ("close", "shut"),
    "combine": ("combine", "merge", "join", "put together"),
    "compare": ("compare", "contrast"),
    "compute": ("compute", "calculate", "work out"),
    "construct": ("construct", "build", "make", "assemble"),
    "convert": ("convert", "transform", "turn", "translate"),
    "count": ("count", "tally"),
    "decide": ("decide", "determine", "find out"),
    "determine": ("determine", "find out", "establish", "work out"),
    "draw": ("draw", "plot", "sketch", "render"),
    "estimate": ("estimate", "approximate", "gauge"),
    "expand": ("expand", "unfold", "multiply out"),
    "extract": ("extract", "pull out", "take out"),
    "fetch": ("fetch", "get", "retrieve"),
    "fill": ("fill", "populate"),
    "filter": ("filter", "sift", "pick out"),
    "format": ("format", "render", "write out"),
    "get": ("get", "obtain", "find", "give me"),
    "insert": ("insert", "put in", "add"),
    "iterate": ("iterate", "go", "loop", "walk"),
    "join": ("join", "merge", "combine"),
    "load": ("load", "read in"),
    "map": ("map", "apply"),
    "merge": ("merge", "combine", "join"),
    "multiply": ("multiply", "take the product of"),
    "open": ("open", "access"),
    "parse": ("parse", "read", "interpret"),
    "partition": ("partition", "divide", "split"),
    "perform": ("perform", "carry out", "do"),
    "plot": ("plot", "draw", "chart"),
    "print": ("print", "show", "write out"),
    "produce": ("produce", "make", "generate"),
    "read": ("read", "load", "read in"),
    "reduce": ("reduce", "lower", "shrink"),
    "return": ("return", "get", "find", "give me"),
    "run": ("run", "execute", "carry out"),
    "save": ("save", "store", "write"),
    "select": ("select", "choose", "pick"),
    "simplify": ("simplify", "make simpler"),
    "solve": ("solve", "find the solution of"),
    "sort": ("sort", "order", "arrange"),
    "split": ("split", "divide", "break"),
    "subtract": ("subtract", "take away"),
    "transform": ("transform", "convert", "change"),
    "write": ("write", "store", "output"),
    "yield": ("yield", "generate", "produce"),
}
_TRUTH = re.compile(r"^returns? (?:`*true`* (?:if and only if|iff|if|when|whether)|whether)\b", re.IGNORECASE)


def _meant(spec: ApiSpec) -> str:
    """The description, predicates as what they are for."""
    return _TRUTH.sub("Check whether", spec.description)


class PackageComments(dict):
    """API id -> at most three wordings of its description, made when asked for."""

    def __init__(self, index: ApiIndex):
        self.index = index

    def __missing__(self, api: str) -> list[str]:
        spec = self.index.by_id[api]
        self[api] = distinct_comments(_meant(spec), spec.name, PROMPTS_PER_API, api, MORE_VERBS)
        return self[api]


def obstacle(spec: ApiSpec, wordings: Mapping[str, Sequence[str]]) -> str:
    """Why an operation is not asked for, "" where it can be."""
    if flagged := next((reason for flag, reason in REASONS.items() if flag in spec.flags), ""):
        return flagged
    return "" if wordings[spec.id] else LEAKING if intent(_meant(spec), MORE_VERBS) else WORDLESS


def obstacles(index: ApiIndex, wordings: Mapping[str, Sequence[str]] | None = None) -> Counter:
    """How many operations are left out of the benchmark for which reason; under "" those that are not."""
    wordings = PackageComments(index) if wordings is None else wordings
    return Counter(obstacle(spec, wordings) for spec in index.specs if spec.operation)


def build(index: ApiIndex, count_name: Mapping[str, int], count_bound: Mapping[str, int],
          per_class: int = PER_CLASS, seed: int = 0,
          wordings: Mapping[str, Sequence[str]] | None = None) -> list[Task]:
    """At most ``per_class`` tasks of each frequency class, dealt as in ``benchmark.sample``.

    ``count_name`` and ``count_bound`` count by API id (``frequency_table``); ``wordings`` maps API ids to comments made
    elsewhere. Raises UserError where no API can be asked for.
    """
    wordings = PackageComments(index) if wordings is None else wordings
    members = defaultdict(list)
    for spec in index.specs:
        if spec.operation and not obstacle(spec, wordings):
            members[frequency_class(count_name.get(spec.id, 0))].append(spec)
    tasks = [make_task(*pair, frequency, index, count_name, count_bound)
             for frequency in COMPOSITION
             for pair in sample(members[frequency], count_name, per_class, seed, wordings)]
    if not tasks:
        reasons = "; ".join(f"{times} {reason}" for reason, times in obstacles(index, wordings).most_common())
        raise UserError(f"no API of the index can be asked for ({reasons})")
    return numbered(tasks)


def own_sources(packages: Sequence[Package]) -> Iterator[SourceFile]:
    """The packages' own Python files, tests included: the corpus where no other is named.

    Raises UserError for a package without sources.
    """
    for package in packages:
        if package.folder is None:
            raise UserError(f"{package.name} has no Python sources to count in: name a corpus of code that uses it")
        inside = package.name.replace(".", "/") + "/" if package.folder.is_dir() else ""
        for file in source_files(str(package.folder)):
            yield replace(file, path=inside + file.path)
