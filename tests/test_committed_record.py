"""Tests that the committed record fits the code at HEAD: its conditions, packages and rows. `make
reproduce` generates a share of the rows again.
"""

import io
import re
from contextlib import redirect_stdout

import pytest

from lookuplab import paths
from lookuplab.run import audit

pytestmark = pytest.mark.skipif(not audit.about(), reason="this checkout has no record")


def test_the_record_was_made_under_the_conditions_and_packages_of_today():
    told = audit.about()
    assert told["conditions"] == audit.conditions(), "make a new record from a cold run"
    pins = dict(
        re.findall(r"^([\w.-]+)==([^\s;]+)", (paths.ROOT / "constraints.txt").read_text(), re.M)
    )
    for run in told["runs"]:
        for name in "torch transformers tokenizers peft jedi parso pylint astroid".split():
            assert run["packages"][name].partition("+")[0] == pins[name], name
        assert run["git"]["commit"] and not run["git"]["dirty"]


def test_the_page_about_the_record_prints_what_it_shows():
    text = (paths.ROOT / "docs" / "record.md").read_text(encoding="utf-8")
    names = {}
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    for code, shown in blocks:
        with redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        assert printed.getvalue().rstrip() == shown.rstrip()
