"""Code around one invocation: values, layouts, what comes before and after. Real and invented APIs share it."""

import keyword
import random
import re
from dataclasses import dataclass

from lookuplab.cloudapi.prompts import construction, imports, task_prompt
from lookuplab.cloudapi.specs import ApiSpec, Parameter

OPENINGS = ("Now ", "First, ", "Then ", "Next, ", "Here we ", "We need to ", "We have to ", "Step 2: ", "Finally, ",
            "Let us ")
PURPOSES = (" for the nightly job", " before the release", " for this demo", " in the staging account",
            " for the report", " as the ticket asks", " once a day", " for the new team",
            " on behalf of the caller", " and keep the answer")
TAILS = ("\nprint(response)\n", "\nprint(response)\n", "\nreturn_value = response\n",
         "\nlogger.info(response)\n", "\nassert response is not None\n")


@dataclass(frozen=True)
class Layout:
    """Where the call stands: everything up to the API's name, the indentation of the call, and what follows it."""

    before: str
    indent: str
    after: str

    @property
    def resumable(self) -> bool:
        """Whether another statement may follow the call."""
        return not self.before.endswith("return client.")


def words(name: str) -> list[str]:
    """The words of an identifier in any case style: ``LifecycleHookName`` -> lifecycle, hook, name."""
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def value(parameter: Parameter, rng: random.Random) -> str:
    """A plausible argument, as a developer's example would have it; strings are named after their parameter."""
    parts = words(parameter.name)
    kebab, snake = "-".join(parts), "_".join(parts)
    snake += "_value" if keyword.iskeyword(snake) else ""
    match parameter.type:
        case "integer" | "long":
            return rng.choice(("1", "10", "100", "5"))
        case "boolean":
            return rng.choice(("True", "False"))
        case "float" | "double":
            return rng.choice(("0.5", "1.0"))
        case "list":
            return f'["my-{kebab}"]' if rng.random() < 0.7 else snake
        case "structure" | "map":
            return '{"key": "value"}' if rng.random() < 0.6 else snake
        case "blob":
            return 'b"data"'
        case "timestamp":
            return '"2024-01-01"'
    return f'"my-{kebab}"' if rng.random() < 0.75 else snake


def arguments(spec: ApiSpec, rng: random.Random) -> list[tuple[str, str]]:
    """(name, value) of every required argument, sometimes of one or two optional ones."""
    optional = [p for p in spec.parameters if not p.required and not p.kind.startswith("VAR_")]
    chosen = [p for p in spec.parameters if p.required]
    if optional and rng.random() < 0.2:
        chosen += rng.sample(optional, min(len(optional), rng.choice((1, 1, 2))))
    return [(p.name, value(p, rng)) for p in chosen]


def call(spec: ApiSpec, indent: str, rng: random.Random) -> str:
    """``name(...)`` on one line or with one argument a line; never a syntax error, always a valid invocation."""
    pairs = arguments(spec, rng)
    positional = spec.provider == "azure" and rng.random() < 0.15 and all(
        p.kind == "POSITIONAL_OR_KEYWORD" for p in spec.parameters if p.required)
    named = {p.name for p in spec.parameters if p.required} if positional else set()
    texts = [v if n in named else f"{n}={v}" for n, v in pairs]
    if len(texts) <= 1 or rng.random() < 0.4:
        return f"{spec.name}({', '.join(texts)})"
    inner = "".join(f"{indent}    {text},\n" for text in texts)
    return f"{spec.name}(\n{inner}{indent})"


def layout(spec: ApiSpec, comment: str, rng: random.Random) -> Layout:
    """The benchmark's own layout in 6 of 10 documents, else one of several other habits."""
    after = "\n" if rng.random() < 0.7 else rng.choice(TAILS)
    style = rng.random()
    if style < 0.6:
        return Layout(task_prompt(spec, comment), "", after)
    if style < 0.75:
        variable = rng.choice(("result", "response", "out"))
        return Layout(f"{imports(spec)}\n{construction(spec)}# {comment}\n{variable} = client.", "", "\n")
    if style < 0.9:
        define = f"def {rng.choice(('main', 'handler', 'run', 'task'))}():\n"
        body = f"    # {comment}\n    {rng.choice(('return ', 'response = '))}client."
        return Layout(f"{imports(spec)}\n{construction(spec)}\n\n{define}{body}", "    ", "\n")
    return Layout(f"{imports(spec)}import logging\n\n{construction(spec)}\n# {comment}\nclient.", "", "\n")


def decorate(comment: str, rng: random.Random) -> str:
    """A comment as people write it: an opening, a purpose, or a word left out."""
    draw = rng.random()
    if draw < 0.12:
        parts = comment.split()
        if len(parts) > 4:
            del parts[rng.randrange(1, len(parts))]
        return " ".join(parts)
    if draw < 0.3:
        return rng.choice(OPENINGS) + comment[0].lower() + comment[1:]
    return comment + rng.choice(PURPOSES) if draw < 0.5 else comment
