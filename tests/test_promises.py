"""Tests that each promise of docs/promises.md names tests that exist."""

import re

from lookuplab.paths import ROOT


def test_every_promise_has_its_test():
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py")]
    for promise in re.findall(r"^- (.*)$", page, re.MULTILINE):
        named = re.findall(r"`(test_\w+)`", promise)
        assert named, promise
        for name in named:
            assert any(f"def {name}(" in text for text in texts), name
