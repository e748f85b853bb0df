"""Judges Gorilla's published answers to APIBench by two rules: the authors' rule, reproduced
exactly, and a clean rule, which compares parsed calls.

Each question asks for a call that loads a model from a hub. Two 7B models answered: FT was
fine-tuned without documents, RT with the right document in the prompt. The prompt had no document,
the one that BM25 or a GPT index found, or the right one (oracle). Source: Patil et al., *Gorilla*
(arXiv 2305.15334), Tables 1 and 2. The files are those of ShishirPatil/gorilla at the commit that
``data/sources.toml`` pins.
"""

import ctypes
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import tree_sitter_python
from tree_sitter import Language, Node, Parser

from lookuplab import paths
from lookuplab.benchmark import Benchmark, written
from lookuplab.errors import UserError
from lookuplab.models import Completion, Prompt
from lookuplab.paths import file_hash, json_lines
from lookuplab.run import downloads
from lookuplab.work import watched

FOLDER = paths.DOWNLOADS / "gorilla-answers"
HUBS = {"torchhub": "torchhub", "tensorflowhub": "tensorflow", "huggingface": "huggingface"}
MODELS = ("FT", "RT")
ARMS = ("0_shot", "bm25", "gpt_index", "oracle")
MARKS = {"torchhub": "th", "tensorflowhub": "tf", "huggingface": "hf"}  # how a model_id names a hub
ARM_MARKS = {  # the beginning of a model_id names the arm
    "zshot": "0_shot",
    "bm25": "bm25",
    "llama": "gpt_index",
    "retrieve": "oracle",
    "golden": "oracle",
}
CORRECT, HALLUCINATED, WRONG = "correct", "hallucinated", "wrong"
REPEATED = "Use this API documentation for reference"  # precedes the document in a prompt
GRAMMAR = "my-languages.so"  # of the official scripts of 2022, compiled for Linux on x86-64
_PARSER = Parser(Language(tree_sitter_python.language()))


class DatabaseCall(NamedTuple):
    """A call of the database as the official rule reads it: its name, the values that an answer
    must contain, and its domain.
    """

    name: bytes
    values: list[str]
    domain: str


@cache
def official_parser(folder: Path) -> Parser:
    """Return the parser for the official rule. It has the grammar of the official scripts if that
    file was fetched and can be loaded on this machine. Otherwise it has today's grammar, which
    recovers differently from the syntax errors that prose causes.

    Raises UserError if the file is not the pinned one, because loading a library runs its code.
    """
    file = folder.resolve() / GRAMMAR
    if file.is_file() and file_hash(file) != downloads.find("gorilla-answers-grammar").sha256:
        raise UserError(f"{file} is not the pinned file: remove it and fetch it again")
    try:
        language = ctypes.CDLL(str(file)).tree_sitter_python
    except OSError:
        return _PARSER
    language.restype = ctypes.c_void_p
    return Parser(Language(language()))


def parse(code: str, parser: Parser = _PARSER) -> Node:
    """Return the root of the code's syntax tree. Code with syntax errors has a tree, too."""
    return parser.parse(code.encode()).root_node


def text_of(node: Node) -> bytes:
    """Return the source text of a node."""
    return node.text or b""


def cut_call(text: str) -> str | None:
    """Return the part of an answer that the official rule takes for its call; None if the answer
    does not contain ``api_call``.

    The rule looks at the text after the first ``api_call``, up to the next ``api_call`` or
    ``api_provider``. The call begins two characters after that text's first colon and ends with its
    last closing bracket. Nothing is unescaped.
    """
    parts = text.split("api_call")
    if len(parts) == 1:
        return None
    part = parts[1].split("api_provider")[0]
    start = max(part.find(":"), 0)
    end = part.rfind(")") if ")" in part else -2
    return part[start + 2 : end + 1]


def sub_trees(root: Node) -> list[tuple[Node, bytes | None]]:
    """Return (node, text of its first child) for the root and for every other node that has
    children. As in the official script, the order is depth first, and a node's last child comes
    first.
    """
    stack = [root]
    found: list[tuple[Node, bytes | None]] = []
    while stack:
        node = stack.pop()
        found.append((node, text_of(node.children[0]) if node.child_count else None))
        stack += [child for child in node.children if child.child_count]
    return found


def database_call(
    hub: str, call: str, domain: str, parser: Parser = _PARSER
) -> DatabaseCall | None:
    """Return the call of a database row as the official rule reads it; None if the rule skips the
    row.

    The hub decides which values an answer must contain:

    - torchhub: the values of the arguments whose text contains ``repo_or_dir`` or ``model``
    - tensorflowhub: the value of an argument that contains ``model=``; the whole text of any other
      argument
    - huggingface: the value of an argument that contains ``=``; the whole text of any other
      argument
    """
    root = parse(call, parser)
    statement = root.children[0] if root.child_count else root
    first = statement.children[0] if statement.child_count else statement
    if not first.child_count:
        return None
    marks = {"torchhub": ("repo_or_dir", "model"), "tensorflowhub": ("model=", "model =")}
    values = []
    for argument in first.children[1].children:
        whole = text_of(argument).decode()
        if any(mark in whole for mark in marks.get(hub, ("=",))):
            values.append(text_of(argument.children[2]).decode())
        elif hub != "torchhub" and whole not in ("(", ")", ","):
            values.append(whole)
    stripped = [value.strip("'") for value in values]
    return DatabaseCall(text_of(first.children[0]), stripped, domain) if values else None


def official_domain(
    call: str, database: Sequence[DatabaseCall], parser: Parser = _PARSER
) -> str | None:
    """Return the domain of the first row of the database that a call matches; None if it matches
    none.

    A row matches if all its values occur in the text of one sub-tree of the call: the first
    sub-tree whose first child is the row's name. If no sub-tree has that name, the last one visited
    is compared, because the official loop ends there.
    """
    trees = sub_trees(parse(call, parser))
    texts = [text_of(node).decode(errors="replace") for node, _ in trees]
    places: dict[bytes | None, int] = {}
    for place, (_, key) in enumerate(trees):
        places.setdefault(key, place)
    for row in database:
        text = texts[places.get(row.name, -1)]
        if all(value in text for value in row.values):
            return row.domain
    return None


def official_verdict(
    hub: str, text: str, domain: str, database: Sequence[DatabaseCall], parser: Parser = _PARSER
) -> str:
    """Return the official verdict on an answer: *correct* if the first row that matches has the
    question's domain, *hallucinated* if no row matches, else *wrong*.

    An answer without ``api_call`` is *wrong* on torchhub. On the other hubs its whole text is
    compared.
    """
    call = cut_call(text)
    if call is None:
        if hub == "torchhub":
            return WRONG
        call = text
    found = official_domain(call, database, parser)
    return HALLUCINATED if found is None else CORRECT if found == domain else WRONG


class Call(NamedTuple):
    """A call in an answer or in the database.

    ``name`` is dotted. ``arguments`` has each argument that is a string literal, as (keyword or "",
    value without quotes). ``inner`` has the calls with such arguments that are nested in this
    call's arguments, at any depth.

    The branch or tag of a repository on torch hub is left out of a value, because calls may omit
    it.
    """

    name: str
    arguments: tuple[tuple[str, str], ...]
    inner: tuple["Call", ...] = ()

    def is_made_by(self, calls: Iterable["Call"]) -> bool:
        """Return whether ``calls``, the calls of an answer, load the same model as this call of the
        database. Some call of the answer must name this call, and for each inner call some call of
        the answer must name it. Inner calls may be at any place in the answer, because their result
        may first be stored in a variable (``model=model``).
        """
        made = list(calls)
        return all(any(part.names(call) for call in made) for part in (self, *self.inner))

    def names(self, other: "Call") -> bool:
        """Return whether ``other`` has the same function as this call and all its string arguments.
        Inner calls are ignored.

        Two functions are the same if the longer name ends in the shorter one (``torch.hub.load``
        and ``hub.load``). The keywords of two arguments are compared only if both have one.
        """
        mine, theirs = self.name.split("."), other.name.split(".")
        shorter = min(len(mine), len(theirs))
        if mine[-shorter:] != theirs[-shorter:]:
            return False
        return all(
            any(
                value == found and (not key or not word or key == word)
                for word, found in other.arguments
            )
            for key, value in self.arguments
        )


@cache
def calls_in(text: str) -> tuple[Call, ...]:
    """Return every call in a text that has a string argument, in the order of the text."""
    stack = [parse(text)]
    found = []
    while stack:
        node = stack.pop()
        stack += reversed(node.children)
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        values = tuple(_texts(arguments)) if node.type == "call" and arguments else ()
        if function and arguments and values:
            name = re.sub(r"\s", "", text_of(function).decode(errors="replace"))
            found.append((node.start_byte, arguments, Call(name, values)))
    found.sort(key=lambda each: each[0])
    return tuple(
        call._replace(
            inner=tuple(
                other
                for start, _, other in found
                if arguments.start_byte < start < arguments.end_byte
            )
        )
        for _, arguments, call in found
    )


def _texts(arguments: Node) -> Iterator[tuple[str, str]]:
    for argument in arguments.named_children:
        keyword = argument.type == "keyword_argument"
        value = argument.child_by_field_name("value") if keyword else argument
        if value and value.type == "string":
            word = argument.child_by_field_name("name") if keyword else None
            content = text_of(value).decode(errors="replace").lstrip("rbufRBUF").strip("'\"")
            content = re.sub(r"(\A[\w.-]+/[\w.-]+):[\w./-]+\Z", r"\1", content)
            yield text_of(word).decode() if word else "", content


def unescaped(text: str) -> str:
    """Return a text without backslashes before quotes, and with a line end for each ``\\n``.
    Several backslashes in a row count as one.
    """
    return re.sub(r"\\+(['\"`])", r"\1", re.sub(r"\\+n", "\n", text))


def marked_part(text: str) -> str:
    """Return the part of an answer that names its call, unescaped: the text between ``api_call``
    and ``api_provider``. Without ``api_call``, return the whole answer.

    Some answers begin with a copy of their prompt, whose document does not belong to the answer. If
    no ``api_call`` comes before the document, the text from the document to the code mark after it
    (``<<<code>>>`` or three backticks) is cut out.
    """
    own, copied, rest = text.partition(REPEATED)
    if copied and "api_call" not in own:
        text = own + "".join(_CODE.split(rest, maxsplit=1)[1:])
    _, mark, rest = text.partition("api_call")
    part = rest.split("api_provider")[0] if mark else text
    return re.sub(r"\A[^\w]*:\s*['\"]?(?=\w)", "", unescaped(part)) if mark else unescaped(part)


@dataclass(frozen=True)
class Question:
    """A question of one hub and one arm (way of retrieval).

    ``number`` is its line in the evaluation set, from 1. ``reference`` is the call that answers it,
    None if ``reference_call``, the text of that call, has no string argument; ``domain`` is the
    call's domain. ``document`` and ``document_domain`` are the call and the domain of the document
    before the question. Without a document they are None and "".
    """

    hub: str
    arm: str
    number: int
    text: str
    reference: Call | None
    reference_call: str
    domain: str
    document: Call | None = None
    document_domain: str = ""

    @property
    def id(self) -> str:
        return f"{self.hub}-{self.arm}-{self.number}"

    @property
    def document_kind(self) -> str:
        """Return none, right, wrong_same_domain or wrong_other_domain; unknown if there is no
        reference with which the document can be compared.
        """
        if not self.document_domain:
            return "none"
        if not self.reference:
            return "unknown"
        if self.document and _equal(self.document, self.reference):
            return "right"
        return "wrong_same_domain" if self.document_domain == self.domain else "wrong_other_domain"


def _equal(first: Call, second: Call) -> bool:
    return first.is_made_by((second, *second.inner)) and second.is_made_by((first, *first.inner))


_CODE = re.compile(r"<<<code>>>|```")
_DOCUMENT = re.compile(REPEATED + ":(.*)", re.DOTALL)
_DOMAIN = re.compile(r"""["']domain["']\s*:\s*["'](.*?)["']\s*,\s*["']framework["']""", re.DOTALL)
_CALL = re.compile(
    r"""["']api_call["']\s*:\s*["'](.*?)["']\s*,\s*["']api_arguments["']""", re.DOTALL
)


def document_of(question: str) -> tuple[Call | None, str]:
    """Return the call and the domain of the document in a question's text; (None, "") if the text
    has no document.
    """
    found = _DOCUMENT.search(question)
    if not found:
        return None, ""
    text = unescaped(unescaped(found[1]))
    domain, call = _DOMAIN.search(text), _CALL.search(text)
    return next(iter(calls_in(call[1])), None) if call else None, domain[1] if domain else "unknown"


@dataclass
class Hub:
    """The database and the evaluation set of a hub, read from the folder of fetched files."""

    name: str
    folder: Path
    parser: Parser = field(init=False)  # for the official rule
    database: list[DatabaseCall] = field(init=False)
    entries: list[tuple[Call, str]] = field(init=False)  # for the clean rule: (call, domain)
    references: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        rows = [row for _, row in json_lines(self.folder / f"{self.name}_api.jsonl")]
        self.parser = official_parser(self.folder)
        about = ((row["api_call"], row["domain"]) for row in rows)
        read = (database_call(self.name, *each, self.parser) for each in about)
        self.database = [row for row in read if row]
        calls = ((calls_in(row["api_call"]), row["domain"]) for row in rows)
        self.entries = [(found[0], domain) for found, domain in calls if found]
        file = self.folder / f"{HUBS[self.name]}_eval.json"
        self.references = [row["api_data"] for _, row in json_lines(file)]

    def questions(self, arm: str) -> Iterator[Question]:
        """Yield the questions of an arm as the models read them."""
        for _, line in json_lines(self.folder / f"questions_{self.name}_{arm}.jsonl"):
            reference = self.references[line["question_id"] - 1]
            call = next(iter(calls_in(reference["api_call"])), None)
            yield Question(
                self.name,
                arm,
                line["question_id"],
                line["text"],
                call,
                reference["api_call"],
                reference["domain"],
                *document_of(line["text"]),
            )

    def answers(self, model: str, arm: str) -> dict[int, str]:
        """Return {question's number: answer} for a model and an arm."""
        file = self.folder / f"response_{self.name}_Gorilla_{model}_{arm}.jsonl"
        return {line["question_id"]: line["text"] for _, line in json_lines(file)}


class ApiBench(Benchmark[Question]):
    """APIBench as it was put to Gorilla's models: all hubs and arms.

    ``lookuplab score lookuplab_notebooks.published.apibench:ApiBench FILE`` judges a file in the
    authors' format.

    A judgement has these columns:

    - ``official``: the official verdict; ``official_correct`` and ``official_hallucinated`` tell
      whether it is *correct* or *hallucinated*
    - ``reference``: whether the answer has the call that the question asks for; None if the
      question's reference has no string argument
    - ``domain``: whether it has a call of the database with the question's domain, which is what
      the official rule means by correct
    - ``invented``: whether it has calls, but none that is in the database
    - ``no_call``: whether it has no call that loads anything, such as prose
    - ``document``: the kind of the document (``Question.document_kind``)
    """

    measures = (
        "official_correct",
        "official_hallucinated",
        "domain",
        "reference",
        "invented",
        "no_call",
    )
    by = "document"

    def __init__(self, folder: Path = FOLDER) -> None:
        self.hubs = {name: Hub(name, folder) for name in HUBS}
        self.tasks = [
            question
            for hub in self.hubs.values()
            for arm in ARMS
            for question in hub.questions(arm)
        ]

    def line(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a line of an authors' file as a task's id and a completion. Its ``model_id`` names
        the hub and the arm (``bm25-FT-tf-may14``). A line with an ``id``, or without the authors'
        fields, is returned unchanged.
        """
        name = str(record.get("model_id"))
        hub = next((hub for hub, mark in MARKS.items() if f"-{mark}-" in name), None)
        arm = next((arm for mark, arm in ARM_MARKS.items() if name.startswith(mark)), None)
        if "id" in record or not (hub and arm and "question_id" in record and "text" in record):
            return record
        return {"id": f"{hub}-{arm}-{record['question_id']}", "completion": record["text"]}

    def prompt(self, task: Question) -> Prompt:
        """Return the question with its document, as in the published file."""
        return Prompt(task.id, task.text)

    def cluster(self, task: Question) -> str:
        """Return the text of the reference call. Questions with the same call succeed and fail
        together.
        """
        return task.reference_call

    def judge(self, task: Question, completion: Completion) -> dict[str, Any]:
        """Return the verdicts of both rules on one answer."""
        text = completion.text
        hub = self.hubs[task.hub]
        official = official_verdict(hub.name, text, task.domain, hub.database, hub.parser)
        calls = calls_in(marked_part(text))
        named = task.reference
        is_reference = named.is_made_by(calls) if named else None
        domains = {domain for entry, domain in hub.entries if entry.is_made_by(calls)}
        return {
            "official": official,
            "official_correct": official == CORRECT,
            "official_hallucinated": official == HALLUCINATED,
            "reference": is_reference,
            "domain": bool(is_reference) or task.domain in domains,
            "invented": bool(calls) and not (is_reference or domains),
            "no_call": not calls,
            "document": task.document_kind,
        }


def judge_files(folder: Path = FOLDER) -> Iterator[Mapping[str, Any]]:
    """Yield one row for each answer in the fetched files: its judgement, without its text.

    The columns are hub, model, arm, question (its number), cluster (the hub and a number for the
    reference call, such as ``torchhub-3``), and those of ``ApiBench.judge``.
    """
    bench = ApiBench(folder=folder)
    tasks = {task.id: task for task in bench.tasks}
    arms = list(product(HUBS, ARMS))
    numbers: dict[str, dict[str, int]] = {hub: {} for hub in HUBS}
    for hub, arm in watched(arms, "judging APIBench", "arms"):
        for model in MODELS:
            answers = bench.hubs[hub].answers(model, arm)
            pairs = [
                (task := tasks[f"{hub}-{arm}-{number}"], written(task.id, text))
                for number, text in answers.items()
            ]
            for (task, _), judged in zip(pairs, bench.judge_all(pairs), strict=True):
                of_hub = numbers[hub]
                cluster = of_hub.setdefault(bench.cluster(task), len(of_hub))
                given = {"hub": hub, "model": model, "arm": arm, "question": task.number}
                yield given | {"cluster": f"{hub}-{cluster}"} | judged
