"""The card of the mini benchmark: what it is, how it was made, and the counts of this build."""

from collections import Counter
from pathlib import Path

from lookuplab.mini.problems.examples import LENGTHS, LIBRARIES
from lookuplab.mini.problems.running import versions
from lookuplab.stackoverflow.ds1000 import PERTURBATIONS

LICENCE = "BSD-3-Clause"  # of all four libraries, whose documentation the problems quote
CARD = """# Mini benchmark: executable problems from docstring examples

{count} problems in DS-1000's file format, made by `lookuplab data build problems` from the docstring examples of
{versions}.
Only objects are used that `lookuplab.mini.packages.held_out_example` keeps out of the mini models' training corpus (one
name in ten). Nothing in it is taken from DS-1000 but the names of fields and the marks of a completion prompt.

Licence: {licence}, that of the four libraries. Summaries, set-ups and expressions are the libraries' own, © their
developers; the questions around them and the tests are the kit's.

## Fields

One JSON object a line: `prompt`, `reference_code`, `code_context` and `metadata`. In the metadata, `problem_id`
counts all problems, `library_problem_id` those of a library; `perturbation_origin_id` is the `library_problem_id` of
the origin; `test_case_cnt` inputs are tried. Added to DS-1000's: `object` (the documented object), `example` (number
of the example in its docstring) and `rule` (how a perturbation was made).

## A problem

- **Prompt.** The library, the variables, the summary line of the wanted callable's docstring, the callable's name and
  the arguments it is to get, the printed result where it is short, then imports and set-up. `result` must be
  assigned.
- **Reference.** The example's own expression. Where the example has constants only, they become variables of the
  set-up first.
- **Test.** The program is run twice: with the example's set-up, and with one of its variables changed (reversed,
  shifted or scaled) such that the value is another one. The expected values were computed at build time and stand in
  the context. Numbers and arrays are compared within 1e-6, frames and series by pandas' own tests, the rest by
  equality.
- **Checked** when built, by the kit's grader, in other processes than the one that computed the values: the reference
  passes; `pass`, `result = None`, the first value as a constant, and each variable as it is fail.

## Perturbations

| Kind | Rule | Problems |
|---|---|--:|
{rules}

*reworded*: other sentences and verbs. *story around it*: two sentences of context that change nothing. *renamed*:
other variable names. *number changed*, *flag turned*, *other option*: one argument of the call has another constant
(options are those that the docstring lists). *argument given*: a parameter gets another value than its default. *call
not named*: the callable's name is withheld. *for each of a list*: the call is made for every element of a list. *then
reversed*: the value is turned around. Semantic and Difficult-Rewrite values were computed anew, for both inputs.

## Composition

{composition}

Sizes and shares follow DS-1000's of these four libraries. Objects come once before any comes twice, and an origin
gets a second perturbation of a kind only where there are too few origins that have one.

## Why examples were left out

An example is a statement of a docstring that has, or names, a value. Of {examples} examples of {objects} held-out
objects, {usable} make a problem.

| Reason | {libraries} |
|---|{bars}|
{reasons}

"Too long" is a set-up beyond {setup} characters or an expression beyond {expression}. Random ones are left out by
what they call; "gives another value in a second process" and "a wrong answer passes" count problems and perturbations
that the last check refused.

## Limits

- The questions are made by rule. They name every argument, so they ask whether a model can write a call, more than
  whether it can find the way to an aim (but see *call not named*).
- One expression each: no problem needs several statements.
- Expected values belong to the versions above. Under others some references may fail; the grader says which.
"""


def write(built, path: Path) -> None:
    """Write the card beside the benchmark, as its name with the ending ``.md``."""
    facts = [record["metadata"] for record in built.records]
    kinds = Counter((fact["perturbation_type"], fact["rule"].partition(":")[0]) for fact in facts)
    places = list(LIBRARIES)
    by_kind = Counter((fact["perturbation_type"], fact["library"]) for fact in facts)
    reasons = sorted({reason for counts in built.left_out.values() for reason in counts},
                     key=lambda reason: (-sum(counts[reason] for counts in built.left_out.values()), reason))
    total = sum(built.found.values(), Counter())
    path.with_name(path.name.partition(".")[0] + ".md").write_text(CARD.format(
        count=len(built.records), versions=", ".join(f"{name} {version}" for name, version in versions().items()),
        licence=LICENCE, rules="\n".join(f"| {kind} | {rule or 'the example itself'} | {number} |"
                                         for (kind, rule), number in sorted(kinds.items(), key=_place)),
        composition=_table(["Kind", *places, "all"], [
            [kind, *(by_kind[kind, place] for place in places), sum(by_kind[kind, place] for place in places)]
            for kind in dict.fromkeys(kind for kind, _ in by_kind)]),
        examples=total["examples"], objects=total["objects"], usable=total["usable"], libraries=" | ".join(places),
        bars="|".join(["--:"] * len(places)),
        reasons="\n".join(f"| {reason} | " + " | ".join(str(built.left_out[place][reason]) for place in places) + " |"
                          for reason in reasons),
        setup=LENGTHS["set-up"], expression=LENGTHS["expression"]), encoding="utf-8")


def _place(item: tuple[tuple[str, str], int]) -> tuple[int, str]:
    (kind, rule), _ = item
    return PERTURBATIONS.index(kind), rule


def _table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
