"""Calls the kit's commands, and checks the errors by which the kit refuses input."""

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


def call(*words, main=cli, **options):
    """Return the result of a command, which runs in this process."""
    return CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False, **options)
