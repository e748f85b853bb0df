"""Tests that a notebook checks the parameters that papermill injects, whatever program executes the
notebook.
"""

import re

import pytest
from doors import refused

from lookuplab.results.artifact import Artifact
from lookuplab.results.provenance import kernel_parameters

DECLARED = 'profile = "mini"  # a\nmodels = ["a", "b"]  # b\nrate = 0.5  # c\nlimit = 0  # d'
MADE = 'artifact = Artifact("demo", "counts", profile)'


@pytest.fixture
def kernel(shell):
    """Return a function that runs a parameters cell and then the given cells, and keeps their
    source in the history, as a kernel does.
    """
    shell.user_ns["Artifact"] = Artifact

    def run(*cells):
        for cell in (DECLARED, *cells):
            shell.run_cell(cell, store_history=True).raise_error()
        return shell.user_ns

    return run


def injected(values):
    return f"# Parameters\n{values}\n"


def test_a_single_value_where_a_list_belongs_is_a_list_of_one(kernel):
    found = kernel(injected('models = "a,b"\nrate = 1'), MADE)
    assert (found["models"], found["rate"]) == (["a,b"], 1)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ('modles = ["a"]', "the notebook's parameter is 'modles'; it must be models, "),
        ('limit = "10"', "parameter 'limit' is of type int (here 0), not '10'"),
        ("limit = None", "'limit' is of type int (here 0), not None"),
        ("limit = True", "'limit' is of type int (here 0), not True"),
        ("rate = float('inf')", "not all plain values"),
        ("models = [3]", "'models' is of type str (here 'a'), not 3"),
    ],
)
def test_an_unknown_name_or_another_type_ends_the_notebook_in_one_line(
    kernel, capsys, values, said
):
    with refused(re.escape(said)):
        kernel(injected(values), MADE)
    assert capsys.readouterr().out.count("\n") == 1, "no traceback"


def test_without_injected_values_the_notebooks_own_hold(kernel):
    assert kernel(MADE)["models"] == ["a", "b"]


def test_what_the_notebook_has_changed_since_stays(kernel):
    assert kernel(injected('models = "a"'), "models = 3", MADE)["models"] == 3


def test_the_parameters_of_the_kernel_are_the_injected_ones_over_the_notebooks_own(kernel):
    kernel(injected("limit = 2"), MADE)
    assert kernel_parameters() == {"profile": "mini", "models": ["a", "b"], "rate": 0.5, "limit": 2}
