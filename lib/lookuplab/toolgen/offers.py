"""How many names the completion tool had to offer where it was asked. Rows are those of ``toolgen.tables``."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lookuplab.scoring.rates import average, rate
from lookuplab.scoring.rows import row
from lookuplab.toolgen.calls import Call
from lookuplab.toolgen.caret import ask, suggestions
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.generation import Generations
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.metrics.judgement_store import JudgementStore, key, repository_digest


def offer_rows(written: Mapping[tuple[str, str], Generations], tool: JediTool, store: Path | None = None) -> list[dict]:
    """Per (model, condition) that used the tool: ``answered_percent``, the share of the calls at which any name could
    be chosen, and ``names_per_call``, the mean number of names there. Both with intervals over repositories."""
    rows = []
    for (model, condition), generated in written.items():
        if generated.use.trigger is None or not any(one.calls for one in generated):
            continue
        counts = offers(generated, tool, store)
        numbers = [(one.function.repository, number) for one, of in zip(generated, counts, strict=True) for number in of]
        answered = [(name, number) for name, number in numbers if number]
        found = {"answered_percent": rate([number > 0 for _, number in numbers], [name for name, _ in numbers]).percent()}
        if answered:
            found["names_per_call"] = average([number for _, number in answered], [name for name, _ in answered])
        rows += [row(model, condition, metric, number) for metric, number in found.items()]
    return rows


def offers(generated: Generations, tool: JediTool, store: Path | None = None) -> list[list[int]]:
    """For each function and each of its calls the number of names that began as what was written there.

    The numbers are kept in the judgement store (default: the one beside the completion store). A tool that is still
    open since it was asked remembers its answers.
    """
    digests = {root: repository_digest(root) for root in {one.function.root for one in generated}}
    keys = [key("offers", digests[one.function.root], file=one.function.file, line=one.function.line,
                writes=generated.kind, trigger=generated.use.trigger, variant=generated.use.variant,
                calls=[call.before for call in one.calls]) for one in generated]

    def count(function: Function, call: Call) -> int:
        names = suggestions(ask(tool, function, call.before, generated.kind, generated.use.variant),
                            generated.use.trigger)
        return sum(name.startswith(call.begun) for name in names)

    with JudgementStore(store) as kept, ThreadPoolExecutor(len(tool.workers)) as threads:
        known = kept.get(keys)
        missing = {one: of for one, of in zip(keys, generated, strict=True) if one not in known}
        counting = {one: [threads.submit(count, of.function, call) for call in of.calls] for one, of in missing.items()}
        for one, counts in counting.items():
            known[one] = [number.result() for number in counts]
            kept.put(one, known[one])
    return [known[one] for one in keys]
