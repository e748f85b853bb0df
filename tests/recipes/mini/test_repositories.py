"""Which functions of further repositories are copies of what was trained on."""

from pathlib import Path

import pytest

from lookuplab.toolgen.functions import extract
from recipes.mini import repositories

BODY = "    total = 0\n    for one in values:\n        total += one * weight\n    return total\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('def f(values, weight):\n    """Sum of weights."""\n' + BODY, True),
        # another name, and the same code
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
