"""Reads tables of cases, which are YAML files beside the tests."""

from pathlib import Path

import yaml


def table(test, name):
    """Return the content of the YAML file ``name`` in the folder of a test's file."""
    return yaml.safe_load(Path(test).with_name(name).read_text("utf-8"))
