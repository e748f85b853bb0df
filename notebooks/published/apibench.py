"""Judges Gorilla's published answers to APIBench by a clean rule, which compares parsed calls. The
verdicts of the authors' rule are committed beside them (data/published/apibench/README.md).

Each question asks for a call that loads a model from a hub. Two 7B models answered: FT was
fine-tuned without documents, RT with the right document in the prompt. The prompt had no document,
the one that BM25 or a GPT index found, or the right one (oracle). Source: Patil et al., *Gorilla*
(arXiv 2305.15334), Tables 1 and 2. The files are those of ShishirPatil/gorilla at the commit that
``data/sources.toml`` pins.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import tree_sitter_python
from tree_sitter import Language, Node, Parser

from lookuplab import paths
from lookuplab.benchmark import Benchmark, written
from lookuplab.models import Completion, Prompt
from lookuplab.paths import json_lines
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
REPEATED = "Use this API documentation for reference"  # precedes the document in a prompt
_PARSER = Parser(Language(tree_sitter_python.language()))


def text_of(node: Node) -> bytes:
    """Return the source text of a node."""
    return node.text or b""


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
    stack = [_PARSER.parse(text.encode()).root_node]
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
    entries: list[tuple[Call, str]] = field(init=False)  # (call of the database, its domain)
    references: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        rows = [row for _, row in json_lines(self.folder / f"{self.name}_api.jsonl")]
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

    - ``reference``: whether the answer has the call that the question asks for; None if the
      question's reference has no string argument
    - ``domain``: whether it has a call of the database with the question's domain, which is what
      the authors' rule means by correct
    - ``invented``: whether it has calls, but none that is in the database
    - ``no_call``: whether it has no call that loads anything, such as prose
    - ``document``: the kind of the document (``Question.document_kind``)
    """

    measures = (
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
        """Return the verdicts on one answer."""
        calls = calls_in(marked_part(completion.text))
        named = task.reference
        is_reference = named.is_made_by(calls) if named else None
        entries = self.hubs[task.hub].entries
        domains = {domain for entry, domain in entries if entry.is_made_by(calls)}
        return {
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
