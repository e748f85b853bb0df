"""Tests the names of models. A name such as ``owner/name@main?chat=true`` says where the model is,
at which revision, and whether it is a chat model. Tables show a shorter name, ``owner/name``.
"""

import sys
from pathlib import Path

import pytest
from doors import refused
from tiny_architectures import save_chat

from lookuplab.models import load
from lookuplab.models.names import model_folder, split_revision, table_name
from lookuplab.run.notebooks import Notebook, check, load_profile, plan

OLD, NEW = "1" * 40, "2" * 40


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Make a local cache of the hub with two revisions of owner/tiny. The branch main is at the
    newer one. There is no network.
    """
    folder = tmp_path / "hub" / "models--owner--tiny"
    save_chat(folder / "snapshots" / OLD)
    save_chat(folder / "snapshots" / NEW, vocabulary=160)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(NEW)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return folder


def test_a_folder_with_an_at_in_its_name_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my" / "model@home").mkdir(parents=True)
    assert split_revision("my/model@home") == ("my/model@home", None)


CALLED = """\
owner/name@refs/pr/3?chat=true | owner/name
vllm:mini-large?dtype=bfloat16 | mini-large
/no/such@folder | such@folder
data/downloads/models/removed?dtype=bfloat16 | removed
openai:gpt-4o-2024-05-13 | gpt-4o-2024-05-13
https://host/v1#served/model?chat=true | served/model"""


def test_tables_call_a_model_by_its_name_alone():
    for name, called in (line.split(" | ") for line in CALLED.splitlines()):
        assert table_name(name) == called


def check_model(name):
    """Run the check that comes before a notebook starts."""
    values = {"model": name}
    check(plan(Notebook(Path("demo/counts.ipynb"), values), load_profile("smoke"), values))


@pytest.mark.parametrize(
    ("name", "commit", "vocabulary"),
    [
        (f"owner/tiny@{OLD}?chat=true", OLD, 170),
        ("owner/tiny@main", NEW, 160),
        ("owner/tiny", NEW, 160),
    ],
)
@pytest.mark.usefixtures("hub")
def test_the_named_revision_is_loaded_and_recorded(name, commit, vocabulary):
    model = load(name)
    assert model.name == "owner/tiny" and model.module.config.vocab_size == vocabulary
    assert model.identity["checkpoint"] == f"owner/tiny@{commit}"
    check_model(name)


NO_NAMES = f"""\
owner/tiny@ | no revision after the @
owner/tiny@{OLD}?revision=x | unexpected keyword argument 'revision'
owner/tiny?colour=red | unexpected keyword argument 'colour'
owner/tiny?extra=[1 | extra is .* it must be a JSON object
owner/tiny?batch_size=many | batch_size is 'many'; it must be a whole number above 0
http://host/v1#m?parallel=true | parallel is True; it must be a whole number above 0
owner/tiny?dtype=float8 | dtype is 'float8'; it must be float32, float16, bfloat16
owner/tiny?chat=true&chat=false | chat is given twice
owner/tiny?chat=False | chat is 'False'; it must be true or false
http://host/v1 | a remote model is named
ftp://host#m | a remote model is named
https://me:pw@host/v1#m | ^(?!.*pw).*a remote model is named
http://host/v1#m?logprobs=no | logprobs is 'no'; it must be true or false
owner/tiny@{"3" * 40} | cannot load model owner/tiny"""


@pytest.mark.parametrize("line", NO_NAMES.splitlines())
@pytest.mark.usefixtures("hub")
def test_a_name_that_cannot_be_is_one_clear_line(line):
    name, message = line.split(" | ")
    with refused(message):
        load(name)


@pytest.mark.usefixtures("hub")
def test_a_revision_that_is_not_here_is_told_before_a_notebook_starts():
    with refused(f"not here, and owner/tiny@{'3' * 40} cannot be fetched"):
        check_model(f"owner/tiny@{'3' * 40}")


@pytest.mark.parametrize("owner", ["mini-org", "http-org"])
def test_an_owner_may_be_called_like_a_mini_model_or_an_address(hub, owner):
    hub.rename(hub.with_name(f"models--{owner}--tiny"))
    name = f"{owner}/tiny"
    assert load(name).name == table_name(name) == name
    check_model(name)


def test_a_folder_in_data_is_the_checkout_s_from_anywhere_and_called_by_its_last_part(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("lookuplab.paths.ROOT", tmp_path / "checkout")
    monkeypatch.chdir(tmp_path)
    save_chat(tmp_path / "checkout" / "data" / "tiny")
    model = load("data/tiny?dtype=bfloat16")
    assert model.name == table_name("data/tiny?dtype=bfloat16") == "tiny"
    assert model.tokenizer.get_vocab()


def test_without_vllm_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    monkeypatch.delitem(sys.modules, "lookuplab.models.vllm", raising=False)
    with refused(r"vLLM cannot be used here .* `make vllm`"):
        load("vllm:mini-small")


def test_a_model_of_vllm_is_found_and_named_as_without_it(tmp_path, monkeypatch):
    (tmp_path / "tiny").mkdir()
    monkeypatch.chdir(tmp_path)
    assert model_folder("vllm:mini-small") == model_folder("mini-small")
    notebook = Notebook(tmp_path / "n.ipynb", {"models": ["a"]})
    given = {"models": "vllm:./tiny?x=1"}
    job = plan(notebook, load_profile("paper"), given)
    assert job.parameters["models"] == [f"vllm:{tmp_path / 'tiny'}?x=1"]
    assert [named.place for named in job.named_texts()] == [tmp_path / "tiny"]
