"""The texts, the wrong documents and the resumption of the experiment on documented shares."""

import re

from lookuplab.cloudapi.specs import load_index
from lookuplab.cloudapi.tasks import load_tasks
from recipes.mini import documented
from recipes.mini.corpus import pools


def test_shares_differ_in_nothing_but_the_documents_and_are_nested(monkeypatch):
    monkeypatch.setattr(documented, "TEXTS", 32)
    texts = {share: documented.pairs(share, 0) for share in documented.SHARES}
    shown = {
        share: [re.findall(r"API name: (\w+)", pair.docstring) for pair in pairs]
        for share, pairs in texts.items()
    }
    assert {s: sum(map(bool, names)) for s, names in shown.items()} == {
        "0": 0, "1/16": 2, "1/8": 4, "1/4": 8, "1/2": 16, "1": 32
    }  # fmt: skip
    for share, pairs in texts.items():
        assert [pair.body for pair in pairs] == [pair.body for pair in texts["1"]]
        assert all(a in ([], b) for a, b in zip(shown[share], shown["1"], strict=True))
    names = [name for (name,) in shown["1"]]
    asked = {api.rpartition(".")[2] for pool in ("asked", "development") for api in pools()[pool]}
    assert not asked & {*names} and len({*names}) == 32
    pairs = zip(names, texts["1"], strict=True)
    assert all(f"client.{name}(" in pair.body for name, pair in pairs)


def test_another_seed_draws_other_calls(monkeypatch):
    monkeypatch.setattr(documented, "TEXTS", 8)
    first, second = ({pair.body for pair in documented.pairs("1", seed)} for seed in (0, 1))
    assert not first & second


def test_a_wrong_document_is_of_another_api_of_the_client_where_it_has_one():
    tasks = load_tasks(limit=40)
    by_id = load_index().by_id
    for task, (api,) in zip(tasks, documented.misleading(tasks).values(), strict=True):
        assert by_id[api].name not in {by_id[target].name for target in task.targets}
        near = len(load_index().methods(task.provider, task.client, task.service)) > 1
        assert by_id[api].client == task.client or not near


def test_an_adapter_whose_verdicts_exist_is_not_trained_again(tmp_path, monkeypatch):
    monkeypatch.delattr(documented, "finetuned")
    (tmp_path / "small-1_2-0.csv").write_text("kept")
    documented.make("small", "1/2", 0, tmp_path)
    assert (tmp_path / "small-1_2-0.csv").read_text() == "kept"
