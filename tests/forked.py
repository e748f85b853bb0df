"""Forks the test processes from one process that has already imported slow packages. Otherwise each
test process would spend twenty seconds on imports.

pytest-xdist starts `forked.py PLACE ...` in place of Python. This script passes its input and
outputs to the process that listens at the socket PLACE. That process forks a test process, which
then runs what pytest-xdist sends.
"""

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from socket import AF_UNIX, recv_fds, send_fds, socket

IMPORTED = """boto3 datasets distributed hypothesis ipywidgets jedi matplotlib.pyplot nbformat.v4
openai peft pyarrow.parquet pylint.lint scipy.stats seaborn sentence_transformers
sklearn.linear_model statsmodels.stats.proportion transformers.models.auto.modeling_auto
transformers.models.auto.tokenization_auto transformers.models.llama.modeling_llama"""


def serve(door: socket, count: int) -> None:
    """Import the slow packages. Then fork ``count`` test processes, one for each connection to
    ``door``.
    """
    for name in IMPORTED.split():
        with suppress(ImportError):  # some have no wheel for every Python
            import_module(name)
    gc.freeze()
    for _ in range(count):
        asking, _ = door.accept()
        if not os.fork():
            door.close()
            for number, given in enumerate(recv_fds(asking, 1, 3)[1]):
                os.dup2(given, number)
            sys.argv[:] = ["-c"]
            with open(0, closefd=False) as sys.stdin:
                exec(eval(sys.stdin.readline()), {})  # as execnet asks of Python
            return
        asking.close()
    for _ in range(count):
        os.wait()


def ask(place: str) -> None:
    """Ask the process that listens at ``place`` for a test process. Wait for the test process to
    end.
    """
    with socket(AF_UNIX) as asked:
        asked.connect(place)
        send_fds(asked, [b"0"], [0, 1, 2])
        asked.recv(1)


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        serve(socket(fileno=os.dup(0)), int(sys.argv[1]))
    else:
        ask(sys.argv[1])
