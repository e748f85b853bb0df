"""The tasks for models that ask for documentation (data/mini/ASKING.md). The design says in which
commit the programs stand that made their training texts and trained them.
"""

from collections.abc import Iterable

from lookuplab.cloudapi.tasks import ApiTask, stable_order

ASKING = 0x0090DB87  # the hash of the commit that wrote down the design


def drawn(text: str) -> str:
    """Return a sort key for an API, a task or a text in every draw of the design."""
    return stable_order(text, ASKING)


def tested(further: Iterable[ApiTask]) -> list[ApiTask]:
    """Return the tasks for models that ask: at most two of the further ones for every
    second API.
    """
    tasks = sorted(further, key=lambda task: drawn(task.id))
    never = {task.target: not task.count_name for task in tasks}
    apis = sorted(never, key=lambda api: (never[api], drawn(api)))
    return [one for api in apis[1::2] for one in [t for t in tasks if t.target == api][:2]]
