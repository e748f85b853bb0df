"""Calls the kit's commands, here or in a new process, and checks the errors by which the kit
refuses input.
"""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from lookuplab.errors import UserError
from lookuplab.run.cli import cli


@contextmanager
def refused(message):
    """Expect a UserError whose message has one line and matches a pattern."""
    with pytest.raises(UserError, match=message) as raised:
        yield raised
    assert "\n" not in str(raised.value)


@contextmanager
def quick():
    """Expect the block to take less than 5 seconds of processor time."""
    began = time.process_time()
    yield
    assert time.process_time() - began < 5


def python(*arguments, cwd=None, **variables):
    """Run Python in a new process, which must end without an error."""
    call = sys.executable, *arguments
    variables = os.environ | {name: str(value) for name, value in variables.items()}
    done = subprocess.run(call, cwd=cwd, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def call(*words, main=cli, **options):
    """Return the result of a command, which runs in this process."""
    return CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False, **options)
