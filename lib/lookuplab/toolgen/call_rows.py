"""How often generation asked the completion tool, and whether every name that it chose was offered there.

Rows are those of ``toolgen.tables``. The check asks Jedi once more at every call; its outcome is kept beside the
judgements, so that a second run asks nothing.
"""

import copy
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from lookuplab.models.store import canonical, digest
from lookuplab.scoring.rates import Rate, average
from lookuplab.scoring.rows import row
from lookuplab.toolgen.generation import Generations, check_suggestions
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.metrics.judgement_store import JudgementStore, key, repository_digest


def call_rows(written: Mapping[tuple[str, str], Generations], tool: JediTool, store: Path | None = None,
              progress: bool = True) -> list[dict]:
    """Per (model, condition) that used the tool: ``calls`` of all functions, ``calls_per_function`` with its interval
    over repositories, and ``not_offered_calls``, the exceptions of ``check_suggestions``, of ``n`` calls.

    ``store``: the judgement store's file, by default the one beside the completion store.
    """
    rows = []
    for (model, condition), generated in written.items():
        if generated.use.trigger is None:
            continue
        counts = [len(one.calls) for one in generated]
        exceptions = sum(not_offered(generated, tool, store, progress).values())
        bare = float("nan")
        numbers = {"calls": Rate(sum(counts), bare, bare, len(counts)),
                   "calls_per_function": average(counts, [one.function.repository for one in generated]),
                   "not_offered_calls": Rate(exceptions, bare, bare, sum(counts))}
        rows += [row(model, condition, metric, number) for metric, number in numbers.items()]
    return rows


def not_offered(generated: Generations, tool: JediTool, store: Path | None = None, progress: bool = True
                ) -> dict[str, int]:
    """Id of each function with calls -> how many of the names chosen there were not offered."""
    asked = {one.function.id: one for one in generated if one.calls}
    digests = {root: repository_digest(root) for root in {one.function.root for one in asked.values()}}
    spelled = digest(canonical(generated.vocabulary.tokenizer.get_vocab()))
    keys = {id: key("not offered", digests[one.function.root], file=one.function.file, line=one.function.line,
                    writes=generated.kind, use=asdict(generated.use), vocabulary=spelled,
                    calls=[asdict(call) for call in one.calls]) for id, one in asked.items()}
    with JudgementStore(store) as kept:
        known = kept.get(keys.values())
        missing = copy.copy(generated)
        missing[:] = [one for id, one in asked.items() if keys[id] not in known]
        found = Counter(one.function.id for one in check_suggestions(missing, tool, progress))
        for one in missing:
            kept.put(keys[one.function.id], found[one.function.id])
    return {id: known.get(keys[id], found[id]) for id in asked}
