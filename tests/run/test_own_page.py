"""The page on own material names notebooks, parameters, commands and options that exist."""

import re
import shlex
from importlib import import_module

import pytest
from click.testing import CliRunner

from lookuplab import paths
from lookuplab.run import notebooks
from lookuplab.run.cli import cli

PAGE = (paths.ROOT / "docs" / "own.md").read_text(encoding="utf-8")
CODE = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LINES = [line for kind, text in CODE if kind == "sh" for line in text.splitlines()]
LINES += [quoted for quoted in re.findall(r"`(lookuplab [^`]+)`", PAGE) if "..." not in quoted]
WORDS = [shlex.split(line, comments=True) for line in LINES]
RECIPES = [words[2:] for words in WORDS if words[:2] == ["python", "-m"]]
COMMANDS = [words[1:] for words in WORDS if words[0] == "lookuplab"]


def test_every_line_is_a_command_or_a_recipe():
    assert len(RECIPES) == 5 and len(COMMANDS) + len(RECIPES) == len(WORDS)


@pytest.mark.parametrize("words", COMMANDS + RECIPES, ids=" ".join)
def test_every_command_and_option_exists(words):
    made = import_module(words[0]).main if words in RECIPES else cli
    options = words[1:] if words in RECIPES else words
    done = CliRunner().invoke(made, [*options, "--help"])  # options are parsed before help is shown
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
