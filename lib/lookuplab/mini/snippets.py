"""The mini corpus of snippets: what the docstrings of four installed libraries describe and show.

Who may know what:
- An object is held out if any of its names is (``packages.held_out_example``); the mini models never saw its examples.
- Its examples become the problems of the mini benchmark. They are therefore not in "mini", the corpus that prompts
  show, and neither is an open object's example with the same code. They are in "mini-retrieval", where the retrieval
  queries must find them; a generation that looks there is an oracle and has to say so.
- A query is another sentence of the same docstring (the second of the summary, else one of Returns or Notes), never the
  text that describes the document. What names the object in code is no query.
- Of the open objects a tenth gives validation queries in the same way. Neither their sentences nor those of held-out
  objects train the description model; the word vectors learn from the corpus that is searched, as in nokia/codesearch.
"""

import hashlib
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from tqdm import tqdm

from lookuplab.mini.docstrings import Documented, documented, examples, plain, sections, sentences
from lookuplab.mini.packages import EXAMPLE_PACKAGES, held_out_example, licence_of
from lookuplab.stackoverflow.corpus import MINI, Snippet, write

MAX_CODE = 1200  # characters; longer examples are sessions rather than snippets
MAX_OBJECTS = 3  # a sentence that more objects share asks for nothing in particular
_BOILERPLATE = re.compile(r"User Guide|deprecated|alias|version|docstring|Array API|rv_continuous|rv_discrete|sphx_glr|"
                          r"compatib|^(Refer|See) ", re.I)  # of the documentation, not of the object

CARD = """# Mini corpus of snippets

Descriptions and example code from docstrings of installed libraries, written by `lookuplab data build snippets`; the
same bytes for the same versions. Nothing comes from DS-1000 or Stack Overflow.

| library | licence | snippets |
|---|---|--:|
{rows}

- `snippets.jsonl.gz`: {open:,} snippets, the corpus "mini": `id, description, code, source, licence` a line.
- `held_out.jsonl.gz`: {held_out:,} snippets of the held-out tenth of the objects. With the others they are
  "mini-retrieval", which the test queries search. No prompt may show them: the problems of the mini benchmark are made
  of the same examples.
- `queries_valid.jsonl.gz`, `queries_test.jsonl.gz`: {valid} and {test} queries, `query, relevant_ids` a line. A query
  is another sentence of an object's docstring than the one that describes its snippets; all of its snippets are
  relevant. Test queries ask for held-out objects, validation queries for a tenth of the others.

A snippet's description is the first sentence of the docstring and the sentence that leads to the example; its code is
the example without outputs, behind the earlier statements and imports that it needs.

Left out:
{reasons}

Limits: the queries are sentences of documentation, not questions of users; some state a detail that many objects share.
"""


@dataclass(frozen=True)
class Build:
    """What a build gives: records ready to be written, and how many of what was left out."""

    snippets: list[Snippet]
    held_out: list[Snippet]
    queries: dict[str, list[dict]]
    left_out: dict[str, int]


def split_of(item: Documented) -> str:
    """"test" for a held-out object, "valid" for a tenth of the others, "train" for the rest."""
    if any(held_out_example(name) for name in item.names):
        return "test"
    last = item.name.rpartition(".")[2]
    return "valid" if int(hashlib.sha256(f"valid:{last}".encode()).hexdigest(), 16) % 10 == 0 else "train"


def summary(item: Documented) -> str:
    """The first sentence of a docstring, on one line; "" where it begins with a signature or markup."""
    first = re.split(r"\n\s*\n|(?<=[.])\s", sections(item.text)[""].strip(), maxsplit=1)[0]
    return plain(first) if re.match("[A-Za-z]", first) and "(" not in first.split(" ")[0] else ""


def phrasings(item: Documented) -> list[str]:
    """Other sentences about what an object does, best first: rest of the summary, Returns, Notes."""
    parts = sections(item.text)
    returned = re.sub(r"^\S.*\n", "", parts.get("returns", ""), flags=re.M)  # the lines `name : type`
    found = [*sentences(parts[""]), *sentences(textwrap.dedent(returned)), *sentences(parts.get("notes", ""))]
    naming = {name.rpartition(".")[2] for name in item.names}
    in_code = re.compile(r"|".join(rf"\b{re.escape(name)}(?=\()|\.{re.escape(name)}\b" for name in sorted(naming)))
    first = summary(item)
    return [one for one in dict.fromkeys(found)
            if one.rstrip(".") != first.rstrip(".") and not _BOILERPLATE.search(one) and not in_code.search(one)
            and not any("_" in name and name in one for name in naming)]


def build(distributions: Iterable[str] = tuple(EXAMPLE_PACKAGES), progress: bool = True) -> Build:
    """Read the installed libraries; the same for the same versions."""
    left_out: dict[str, int] = defaultdict(int)
    parts: dict[str, list[Snippet]] = {"train": [], "valid": [], "test": []}
    asked: dict[str, dict[str, list[tuple[str, list[str]]]]] = {"valid": defaultdict(list), "test": defaultdict(list)}
    items = [(name, item) for name in distributions for item in documented(EXAMPLE_PACKAGES[name])]
    for name, item in tqdm(items, "reading docstrings", unit=" objects", disable=not progress):
        split, found = split_of(item), _snippets(name, item, left_out)
        parts[split] += found
        if found and split in asked and (others := phrasings(item)):
            asked[split][others[0]].append((item.name, [snippet.id for snippet in found]))
    held_out = _unique(parts["test"], set(), left_out)
    kept = {_key(snippet.code) for snippet in held_out}
    open_ones = _unique(sorted(parts["train"] + parts["valid"], key=lambda one: one.id), kept, left_out)
    present = {snippet.id for snippet in [*held_out, *open_ones]}
    return Build(open_ones, held_out, {split: _queries(found, present, left_out) for split, found in asked.items()},
                 dict(left_out))


def _snippets(distribution: str, item: Documented, left_out: dict[str, int]) -> list[Snippet]:
    first = summary(item)
    found = examples(sections(item.text).get("examples", "")) or examples(item.text)
    if len(first.split()) < 2 or not found:
        left_out["objects without a describing sentence" if found else "objects without an example"] += 1
        return []
    origin, licence = f"{distribution} {metadata.version(distribution)}: {item.name}", _licence(distribution)
    snippets = []
    for number, example in enumerate(found):
        description = first if not example.lead else f"{first.rstrip('.')}. {example.lead}"
        if len(example.code) > MAX_CODE or "(" not in example.code and "[" not in example.code:
            left_out["examples that are too long or call nothing"] += 1
            continue
        snippets.append(Snippet(f"{item.name}#{number}", description, example.code, origin, licence))
    return snippets


def _licence(distribution: str) -> str:
    return licence_of(metadata.distribution(distribution))


def _key(code: str) -> str:
    """Code without its imports and white space: the same example under another name is the same."""
    return "".join("".join(line.split()) for line in code.splitlines() if not re.match(r"\s*(import|from)\s", line))


def _unique(snippets: Iterable[Snippet], known: set[str], left_out: dict[str, int]) -> list[Snippet]:
    """Each code once, and none that is ``known``."""
    seen, kept = set(known), []
    for snippet in snippets:
        if (key := _key(snippet.code)) in seen:
            left_out["examples whose code stands elsewhere"] += 1
        else:
            seen.add(key)
            kept.append(snippet)
    return kept


def _queries(asked: dict[str, list[tuple[str, list[str]]]], present: set[str], left_out: dict[str, int]) -> list[dict]:
    """``{query, relevant_ids}`` of the sentences that ask for few objects and whose snippets are there."""
    found = []
    for text, objects in sorted(asked.items(), key=lambda item: item[1][0]):
        ids = [one for _, relevant in objects for one in relevant if one in present]
        if len(objects) > MAX_OBJECTS or not ids:
            left_out["sentences that many objects share, or without a snippet"] += 1
        else:
            found.append({"query": text, "relevant_ids": ids})
    return found


def save(made: Build, folder: Path = MINI) -> None:
    """Write the corpus, the held-out documents, the queries and the card."""
    write(folder / "snippets.jsonl.gz", [asdict(snippet) for snippet in made.snippets])
    write(folder / "held_out.jsonl.gz", [asdict(snippet) for snippet in made.held_out])
    for split, records in made.queries.items():
        write(folder / f"queries_{split}.jsonl.gz", records)
    (folder / "snippets.md").write_text(_card(made), encoding="utf-8")


def _card(made: Build) -> str:
    counts = Counter(snippet.source.partition(":")[0] for snippet in [*made.snippets, *made.held_out])
    rows = [f"| {name} | {_licence(name.partition(' ')[0])} | {count:,} |" for name, count in sorted(counts.items())]
    reasons = [f"- {count:,} {reason}" for reason, count in sorted(made.left_out.items())]
    return CARD.format(open=len(made.snippets), held_out=len(made.held_out), valid=len(made.queries["valid"]),
                       test=len(made.queries["test"]), rows="\n".join(rows), reasons="\n".join(reasons))
