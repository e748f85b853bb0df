"""Tests the further repositories: which functions are copies of code that was trained on, how much
of a docstring is kept, and which rows are written.
"""

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from lookuplab.toolgen.functions import extract
from recipes.mini import repositories

BODY = "    total = 0\n    for one in values:\n        total += one * weight\n    return total\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('def f(values, weight):\n    """Sum of weights."""\n' + BODY, True),
        # the same code under another name
        ('def g(values, weight):\n    """Sum of weights."""\n' + BODY, True),
        ('def f(size):\n    """Half the size."""\n    size += 1\n    return size / 2\n', False),
    ],
)
def test_a_function_is_a_copy_by_its_content(text, expected, tmp_path: Path, monkeypatch):
    read = repositories.windows("def f(values, weight):\n" + BODY)
    monkeypatch.setattr(repositories, "known", lambda: (set(), read))
    (tmp_path / "a.py").write_text(text)
    [function] = extract(tmp_path).functions
    assert repositories.is_copy(function) is expected


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Add all values.\n\n    Twice.\n    ", "Add all values.\n\nTwice."),
        # this docstring is one sentence on two lines; the first sentence, on one line, is kept
        # instead
        ("Add all\n    values.", "Add all values."),
        # five words and room for four: the last line is cut
        ("Add all values\n    of it.\n    ", "Add all values"),
    ],
)
def test_a_whole_docstring_is_unindented_and_cut_to_whole_lines(
    docstring, expected, tmp_path: Path, monkeypatch
):
    text = f'def f(values):\n    """{docstring}"""\n' + BODY
    (tmp_path / "a.py").write_text(text)
    [function] = extract(tmp_path).functions
    monkeypatch.setattr(repositories, "LONGEST", 4)
    whole = repositories.with_whole_docstring(function, lambda text: len(text.split()))
    assert whole.docstring == expected


def test_the_rows_of_models_that_are_not_asked_are_kept(tmp_path: Path, monkeypatch):
    # the recipe changes it, and monkeypatch restores it
    monkeypatch.setenv("LOOKUPLAB_SOURCES", "")
    monkeypatch.setattr(repositories, "usable", lambda: ({}, pd.DataFrame()))
    monkeypatch.setattr(repositories, "sources", lambda: tmp_path)
    for role, errors in (("mini-t5", 1.0), ("mini-gpt", 2.5), ("mini-t5", 3.0)):
        judged = {("own", role, "base"): pd.DataFrame({"id": ["a"], "errors": [errors]})}
        monkeypatch.setattr(repositories, "frames", lambda *_, judged=judged: judged)
        asked = ["--model", f"{role}-base", "--out", str(tmp_path)]
        CliRunner().invoke(repositories.main, asked, catch_exceptions=False)
    rows = pd.read_csv(tmp_path / "rows.csv.gz").set_index("model")
    assert rows.errors.to_dict() == {"mini-t5": 3.0, "mini-gpt": 2.5}
