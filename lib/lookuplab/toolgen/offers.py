"""How many names the completion tool had to offer where it was asked. Rows are those of ``toolgen.tables``."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from lookuplab.scoring.rates import average, rate
from lookuplab.scoring.rows import row
from lookuplab.toolgen.calls import Call
from lookuplab.toolgen.caret import ask, suggestions
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.generation import Generations
from lookuplab.toolgen.jedi_tool import JediTool


def offer_rows(written: Mapping[tuple[str, str], Generations], tool: JediTool) -> list[dict]:
    """Per (model, condition) that used the tool: ``answered_percent``, the share of the calls at which any name could
    be chosen, and ``names_per_call``, the mean number of names there. Both with intervals over repositories."""
    rows = []
    for (model, condition), generated in written.items():
        if generated.use.trigger is None or not any(one.calls for one in generated):
            continue
        counts = offers(generated, tool)
        numbers = [(one.function.repository, number) for one, of in zip(generated, counts, strict=True) for number in of]
        answered = [(name, number) for name, number in numbers if number]
        found = {"answered_percent": rate([number > 0 for _, number in numbers], [name for name, _ in numbers]).percent()}
        if answered:
            found["names_per_call"] = average([number for _, number in answered], [name for name, _ in answered])
        rows += [row(model, condition, metric, number) for metric, number in found.items()]
    return rows


def offers(generated: Generations, tool: JediTool) -> list[list[int]]:
    """For each function and each of its calls the number of names that began as what was written there."""
    def count(function: Function, call: Call) -> int:
        names = suggestions(ask(tool, function, call.before, generated.kind, generated.use.variant),
                            generated.use.trigger)
        return sum(name.startswith(call.begun) for name in names)

    with ThreadPoolExecutor(len(tool.workers)) as threads:
        counting = [[threads.submit(count, one.function, call) for call in one.calls] for one in generated]
        return [[number.result() for number in of] for of in counting]
