"""The page on own material names notebooks, parameters, commands and options that exist."""

import re
import shlex

import pytest
from click.testing import CliRunner

from lookuplab import notebooks, paths
from lookuplab.cli import cli

PAGE = (paths.ROOT / "docs" / "own.md").read_text(encoding="utf-8")
CODE = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LINES = [line for kind, text in CODE if kind == "sh" for line in text.splitlines()]
LINES += [quoted for quoted in re.findall(r"`(lookuplab [^`]+)`", PAGE) if "..." not in quoted]
COMMANDS = [shlex.split(line, comments=True)[1:] for line in LINES]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_and_option_exists(words):
    done = CliRunner().invoke(cli, [*words, "--help"])  # options are parsed before help is shown
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "words", [words for words in COMMANDS if words[0] == "run" and len(words) > 1], ids=" ".join
)
def test_every_parameter_belongs_to_its_notebook(words):
    given = [words[at + 1].partition("=")[0] for at, word in enumerate(words) if word == "-p"]
    assert set(given) <= notebooks.find(words[1]).parameters.keys()


def test_every_notebook_of_the_room_has_its_section():
    assert {notebook.id for notebook in notebooks.all_notebooks("own")} <= set(
        re.findall(r"`(own/\w+)`", PAGE)
    )
