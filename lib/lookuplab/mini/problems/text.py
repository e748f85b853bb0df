"""A draft as a record of the benchmark: the prompt a model reads and the program that judges its answer."""

import hashlib
import re

from lookuplab.mini.problems import values
from lookuplab.mini.problems.drafts import Draft
from lookuplab.mini.problems.examples import LIBRARIES

PROMPT = """Problem:

{question}

A:
<code>
{code}
</code>
result = ...  # the value asked for
BEGIN SOLUTION
<code>
"""
CONTEXT = '''{imports}

INPUTS = (
{inputs}
)
EXPECTED = (
{expected}
)
exec_context = """
{template_imports}
[inputs]
[insert]
"""


{same}

def test_execution(solution: str):
    for i in range({cases}):
        code = exec_context.replace("[inputs]", INPUTS[i]).replace("[insert]", solution)
        environment = {{}}
        exec(code, environment)
        same(environment["result"], EXPECTED[i])
'''
OPENINGS = ("I use {library} and have {variables} as in the code below.",
            "Below you see how {variables} came about in my script, which uses {library}.",
            "A question about {library}. Given: {variables}, see the code.")
WISHES = ("{summary}", "What I am after: {summary}", "Is there a short way to get there? The task reads: {summary}")
STORY = ("This is a part of a larger program that several people work on, so please do not change how the data is "
         "made. An older version did it with a loop, which was slow and hard to read.")
SHOWN = ("The result for these values:", "With these numbers I expect:", "So the output should be")
SYNONYMS = (("Return", "Give me"), ("Compute", "Work out"), ("Calculate", "Work out"), ("Evaluate", "Find"),
            ("Test whether", "Find out whether"), ("element-wise", "for each element"), ("Generate", "Make"),
            ("Convert", "Turn"), ("Create", "Make"), ("Construct", "Make"), ("Determine", "Find"))
STEPS = {"for each of a list": "Do this for every element of the list `inputs`; the result is the list of the values.",
         "then reversed": "Then turn the outcome around, so that what is last along its first axis comes first."}


def record(draft: Draft) -> dict:
    """prompt, reference_code and code_context of a problem, in DS-1000's format; the metadata come with its number."""
    return {"prompt": prompt(draft), "reference_code": f"result = {draft.target}", "code_context": context(draft)}


def prompt(draft: Draft) -> str:
    """The question with the example's set-up; the answer begins on the next line."""
    code = "\n".join([*draft.imports, *([""] if draft.imports else []), draft.cases[0][0]])
    return PROMPT.format(question="\n".join(question(draft)), code=code)


def question(draft: Draft) -> list[str]:
    """The lines of the question: what there is, what is wanted with which arguments, and the value for the example."""
    way = variant(draft, len(OPENINGS) - 1) + 1 if draft.rule.startswith("reworded") else 0
    names = [f"`{name}`" for name in variables(draft)]
    opening = OPENINGS[way].format(library=LIBRARIES[draft.library], variables=listed(names))
    summary = draft.summary if draft.summary.endswith((".", "?", "!", ":")) else f"{draft.summary}."
    if way:
        for word, other in SYNONYMS:
            summary = re.sub(rf"\b{word}\b", other, summary)
    lines = [opening, WISHES[way].format(summary=summary), arguments(draft)]
    if draft.rule.startswith("story"):
        lines.insert(1, STORY)
    if draft.rule in STEPS:
        lines.append(STEPS[draft.rule])
    if draft.printed:
        lines += ["", SHOWN[way], "", draft.printed]
    return lines


def variables(draft: Draft) -> list[str]:
    """Variables of the set-up that the expression reads; ``inputs`` alone where the call is made for each of them."""
    if draft.rule == "for each of a list":
        return ["inputs"]
    made = re.findall(r"^(\w+)(?:, *\w+)* *=|^def (\w+)", draft.cases[0][0], re.M)
    names = {first or second for first, second in made}
    return list(dict.fromkeys(name for name in re.findall(r"[A-Za-z_]\w*", draft.target) if name in names))


def arguments(draft: Draft) -> str:
    """Which object and which arguments the call takes, as a sentence."""
    parts = [f"`{source if name in ('', source) else f'{name} = {source}'}`" for name, source in draft.arguments]
    verb = "Apply it" if draft.rule == "call not named" else f"Use `{draft.name}`"
    return verb + f" on `{draft.receiver}`" * bool(draft.receiver) + f" with {listed(parts)}" * bool(parts) + "."


def listed(words: list[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def variant(draft: Draft, ways: int) -> int:
    """One of ``ways`` wordings, decided by the example's name."""
    return int(hashlib.sha256(draft.example.encode()).hexdigest(), 16) % ways


def context(draft: Draft) -> str:
    """The program that tests an answer: both inputs, their values, and the comparison that fits."""
    kind = draft.cases[0][1].kind
    several, _, part = kind.rpartition(" ")
    sources = [expected.source for _, expected in draft.cases]
    same = f"def same(result, expected):{values.SAME[part]}"
    if several:
        same = f"{same.replace('same(', 'same_part(')}\n\ndef same(result, expected):{values.SEVERAL}"
    needed = values.imports_of(part, "\n".join(sources))
    return CONTEXT.format(
        imports="\n".join(dict.fromkeys([*draft.imports, *needed])), template_imports="\n".join(draft.imports),
        inputs="\n".join(f"    {setup!r}," for setup, _ in draft.cases),
        expected="\n".join(f"    {source}," for source in sources), same=same, cases=len(sources))
