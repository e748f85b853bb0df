"""How often generation asked the completion tool, and whether every name that it chose was offered there.

Rows are those of ``toolgen.tables``.
"""

from collections.abc import Mapping

from lookuplab.scoring.rates import Rate, average
from lookuplab.scoring.rows import row
from lookuplab.toolgen.generation import Generations, check_suggestions
from lookuplab.toolgen.jedi_tool import JediTool


def call_rows(written: Mapping[tuple[str, str], Generations], tool: JediTool, progress: bool = True
              ) -> list[dict]:
    """Per (model, condition) that used the tool: ``calls`` of all functions, ``calls_per_function`` with its interval
    over repositories, and ``not_offered_calls``, the exceptions of ``check_suggestions``, of ``n`` calls.
    """
    rows = []
    for (model, condition), generated in written.items():
        if generated.use.trigger is None:
            continue
        counts = [len(one.calls) for one in generated]
        exceptions = len(check_suggestions(generated, tool, progress))
        bare = float("nan")
        numbers = {"calls": Rate(sum(counts), bare, bare, len(counts)),
                   "calls_per_function": average(counts, [one.function.repository for one in generated]),
                   "not_offered_calls": Rate(exceptions, bare, bare, sum(counts))}
        rows += [row(model, condition, metric, number) for metric, number in numbers.items()]
    return rows
