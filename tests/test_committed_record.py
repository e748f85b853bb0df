"""Tests that the committed record fits the code at HEAD: its conditions, packages and rows. `make
reproduce` generates a share of the rows again.
"""

import io
import re
from contextlib import redirect_stdout

import pandas as pd
import pytest

from lookuplab import paths
from lookuplab.models import record
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


def test_its_files_have_the_rows_that_it_states_and_fit_into_fifteen_megabytes():
    files = [record.folder() / f"{name}.parquet" for name in audit.about()["rows"]]
    for file, counts in zip(files, audit.about()["rows"].values(), strict=True):
        assert pd.read_parquet(file).key.nunique() == sum(counts.values()) > 0
    assert sum(file.stat().st_size for file in files) < 15e6


def test_the_page_about_the_record_prints_what_it_shows():
    text = (paths.ROOT / "docs" / "record.md").read_text(encoding="utf-8")
    names = {}
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    for code, shown in blocks:
        with redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        assert printed.getvalue().rstrip() == shown.rstrip()
