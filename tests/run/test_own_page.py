"""Tests that the commands on the pages of docs, above all on the page on your own material, name
notebooks, parameters and options that exist, with values that the notebooks accept.
"""

import re
import shlex
from importlib import import_module
from itertools import pairwise

import pytest
from doors import call

from lookuplab import paths
from lookuplab.run import notebooks
from lookuplab.run.cli import cli, pairs

PAGE = (paths.ROOT / "docs" / "own.md").read_text(encoding="utf-8")
LINES = "".join(re.findall(r"(?ms)^```sh\n(.*?)^```$", PAGE)).splitlines()
LINES += re.findall(r"`(lookuplab (?![^`]*\.\.\.)[^`]+)`", PAGE)
WORDS = [shlex.split(line, comments=True) for line in LINES]
RECIPES = [words[2:] for words in WORDS if words[:2] == ["python", "-m"]]
COMMANDS = [words[1:] for words in WORDS if words[0] == "lookuplab"]
assert len(COMMANDS) + len(RECIPES) == len(WORDS), "a line is neither a command nor a recipe"


@pytest.mark.parametrize("words", COMMANDS + RECIPES, ids=" ".join)
def test_every_command_and_option_exists(words):
    made, *options = (
        (import_module(words[0]).main, *words[1:]) if words in RECIPES else (cli, *words)
    )
    # click parses the options before it shows the help
    done = call(*options, "--help", main=made)
    assert not done.exit_code, done.output


def test_every_notebook_accepts_the_values_that_a_page_gives_it():
    pages = [*paths.ROOT.glob("docs/*.md"), *paths.NOTEBOOKS.glob("*/README.md")]
    texts = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for line in re.findall(r"lookuplab run (?!NOTEBOOK|X)\w[^`\n]+", texts):
        name, *options = shlex.split(line, comments=True)[2:]
        given = [*pairwise(options)]
        values = [value for flag, value in given if flag == "-p"]
        notebook = notebooks.find(name)
        profile = notebooks.load_profile(dict(given).get("--profile", notebook.home))
        job = notebooks.plan(notebook, profile, pairs(values))
        assert not [*notebooks.senseless_values(job)], line
