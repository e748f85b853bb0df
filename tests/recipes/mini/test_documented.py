"""The texts of the experiment on documented shares."""

import re

from recipes.mini import documented


def test_shares_differ_in_nothing_but_the_documents_and_are_nested(monkeypatch):
    monkeypatch.setattr(documented, "TEXTS", 32)
    texts = {share: documented.pairs(share, 0) for share in documented.SHARES}
    shown = {
        share: [re.findall(r"API name: (\w+)", pair.docstring) for pair in pairs]
        for share, pairs in texts.items()
    }
    assert [sum(map(bool, shown[s])) for s in documented.SHARES] == [0, 32, 16, 8, 4, 2]
    for share, pairs in texts.items():
        assert [pair.body for pair in pairs] == [pair.body for pair in texts["1"]]
        assert all(a in ([], b) for a, b in zip(shown[share], shown["1"], strict=True))
