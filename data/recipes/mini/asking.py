"""Chooses the tasks for models that ask for documentation (data/mini/ASKING.md). The programs that
made these models' training texts and trained the models are no longer here; the design names the
commit that has them.
"""

from collections.abc import Iterable

from lookuplab.cloudapi.tasks import ApiTask, stable_order

ASKING = 0x0090DB87  # the seed of every draw: the hash of the commit that added the design


def tested(further: Iterable[ApiTask]) -> list[ApiTask]:
    """Return the tasks for models that ask for documentation: for every second API, at most two of
    the ``further`` tasks about this API.
    """
    tasks = sorted(further, key=lambda task: stable_order(task.id, ASKING))
    never = {task.target: not task.count_name for task in tasks}
    apis = sorted(never, key=lambda api: (never[api], stable_order(api, ASKING)))
    # the other APIs were used to teach the models to ask
    return [one for api in apis[1::2] for one in [t for t in tasks if t.target == api][:2]]
