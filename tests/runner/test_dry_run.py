"""A dry run says what would run, what is missing and what every model needs; it starts nothing and asks no network."""

import json
import socket

import pytest

from lookuplab import data_sources, paths
from lookuplab.cloudapi.augmentation import DESIGNS, docstring
from lookuplab.cloudapi.benchmark import load_tasks
from lookuplab.cloudapi.specs import load_index
from lookuplab.models import local
from lookuplab.models.facts import BYTES, ModelFacts, facts_of
from lookuplab.models.load import is_remote, split_revision, table_name
from lookuplab.paper import values as paper_values
from lookuplab.runner import dry_run, notebooks, profiles
from lookuplab.runner.plan import plan

PAPER = profiles.load("paper")
HUB = sorted({model for models in (PAPER.parameters["models"], *(over.get("models", ()) for over in
              PAPER.notebooks.values())) for model in models if "/" in model and not model.startswith("data/")})
FACTS = dict(architecture="X", parameters=3, dtype="bfloat16", layers=2, kv_heads=3, head_width=5, hidden=7, inner=11,
             context=100)


@pytest.fixture
def offline(monkeypatch):
    """No network at all, and a hub that must not be asked."""
    def refuse(*_):
        raise AssertionError("a dry run must not reach for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def rows_of(said: str) -> dict[str, str]:
    lines = said.partition("\nmodel ")[2].partition("\n\n")[0].splitlines()[1:]
    return {line.split()[0]: line for line in lines}


def test_the_paper_profile_lists_every_model_with_revision_dtype_and_memory(offline):
    jobs = [plan(notebook, PAPER, dry=True) for notebook in notebooks.all_notebooks("cloudapibench")]
    rows = rows_of(dry_run.report(jobs, PAPER))
    reported = set(paper_values("cloudapibench", "table1_base_models").model)
    assert {PAPER.parameters["roles"].get(name.removeprefix("openai:")) for name in rows} == reported
    for name, row in rows.items():
        if is_remote(name):
            assert "endpoint" in row and "needs OPENAI_API_KEY" in row
            continue
        source = data_sources.of_model(name)
        assert f"{source.facts.weights:,.1f}" in row and source.facts.dtype in row and source.facts.architecture in row
        assert ("main (not pinned)" if source.revision == "main" else source.revision[:12]) in row


def test_every_table_name_of_the_paper_profile_has_its_role_where_the_paper_is_compared():
    for notebook in notebooks.all_notebooks():
        told = plan(notebook, PAPER, dry=True).parameters
        for model in told.get("models", ()) if "roles" in told else ():
            fine_tuned = model.rpartition("/")[2].rpartition("-")[0]  # ToolGen's tables name them without the condition
            assert model.startswith("mini-") or table_name(model) in told["roles"] or fine_tuned in told["roles"]


def test_nothing_starts_and_the_exit_code_is_0_where_things_are_missing(kit, offline):
    (kit.root / "own.yaml").write_text("parameters: {tasks: 9, some_file: data/none.jsonl}\nhints: {some_file: buy it}")
    parameters = 'profile = "mini"\ntasks = 3\nsome_file = ""\nmodels = ["nobody/nothing", "openai:gpt-4o", "mini-x"]\n'
    kit.notebook("counts", parameters=parameters)
    for arguments in (["run", "counts"], ["reproduce"]):
        code, said = kit.call(*arguments, "--profile", str(kit.root / "own.yaml"), "--dry-run")
        assert code == 0, said
        assert "1 demo/counts" in said and "tasks = 9" in said and "profile =" not in said
        assert "missing (1): parameter 'some_file' names 'data/none.jsonl', which does not exist; buy it" in said
        assert "set the environment variable OPENAI_API_KEY, or leave it out" in said
        assert "-p models=nobody/nothing,mini-x" in said and "no mini model 'mini-x'" in said
        assert "unknown: not cached" in rows_of(said)["nobody/nothing"]
    assert not (kit.root / "runs").exists()


@pytest.mark.parametrize("arguments", [
    ["reproduce", "--profile", "papre"], ["reproduce", "demos"], ["run", "counts", "-p", "tasks=many"],
    ["run", "counts", "-p", "models="], ["run", "coutns"],
])
def test_what_is_wrong_on_every_machine_is_still_exit_code_2(kit, offline, arguments):
    kit.notebook("counts", parameters='profile = "mini"\ntasks = 3\nmodels = ["x/y"]\n')
    code, said = kit.call(*arguments, "--dry-run")
    assert code == 2 and said.startswith("error: ") and said.count("\n") == 1


def test_the_notebooks_stand_in_the_order_in_which_they_run(kit, offline):
    for name in "abc":
        kit.notebook(name)
    (kit.root / "notebooks" / "order.yaml").write_text("first: [demo/c]\nalone: [demo/a]\n")
    _, said = kit.call("reproduce", "demo", "--dry-run")
    assert [line.split()[1] for line in said.splitlines() if "demo/" in line] == ["demo/c", "demo/b", "demo/a"]


def test_a_needed_download_is_named_and_not_fatal(kit, offline):
    (kit.root / "data").mkdir()
    (kit.root / "data" / "sources.toml").write_text(
        '[corpus]\nkind = "file"\naddress = "http://localhost/c"\nlicence = "x"\npurpose = "y"\n'
        f'size = 1\nsha256 = "{"0" * 64}"\n')
    (kit.root / "own.yaml").write_text("needs: [corpus]\n")
    kit.notebook("counts")
    code, said = kit.call("reproduce", "--profile", str(kit.root / "own.yaml"), "--dry-run")
    assert code == 0 and "missing (all)" in said and "run `lookuplab data get corpus`" in said


def test_a_missing_key_stops_a_run_before_any_kernel_and_names_the_way_out(kit, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    kit.notebook("counts", parameters='profile = "mini"\nmodels = ["openai:gpt-4o", "http://localhost/v1#m"]\n')
    code, said = kit.call("run", "counts")
    assert code == 2 and said.count("\n") == 1 and not (kit.root / "runs").exists()
    assert "needs a key: set the environment variable OPENAI_API_KEY" in said
    assert "-p models=http://localhost/v1#m" in said


def test_memory_is_weights_cache_and_activations_and_a_tenth():
    facts = ModelFacts(**FACTS)
    cache = 2 * 2 * 3 * 5 * 4 * (20 + 10)  # keys and values, layers, heads, width, rows, tokens
    activations = 4 * 20 * (3 * 11 + 2 * 7)
    assert facts.weights == 6e-9
    assert facts.gigabytes(rows=4, prompt=20, new=10) == pytest.approx(1.1 * 2 * (3 + cache + activations) / 1e9)


def test_no_sequence_is_longer_than_the_context():
    facts = ModelFacts(**FACTS)
    assert facts.gigabytes(1, 500, 10) == facts.gigabytes(1, 100, 0)


@pytest.mark.parametrize("size", ["small", "medium", "large"])
def test_the_facts_of_a_folder_are_those_of_its_card(size):
    folder = paths.MINI / "models" / size
    facts, card = facts_of(folder), json.loads((folder / "card.json").read_text())
    assert card["training"]["parameters"] == facts.parameters
    files = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    assert files == pytest.approx(facts.parameters * BYTES[facts.dtype], rel=0.02)


def test_a_folder_that_is_no_checkpoint_has_no_facts(tmp_path):
    assert facts_of(tmp_path) is None
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"half")
    assert facts_of(tmp_path) is None


@pytest.mark.parametrize("model", HUB)
def test_every_model_of_the_paper_has_its_facts_and_a_whole_commit_or_none(model):
    source = data_sources.of_model(model)
    assert source.facts.dtype in BYTES
    assert source.revision == "main" or (len(source.revision) == 40 and int(source.revision, 16))


def test_a_run_gets_the_pinned_revision_and_a_name_may_ask_for_another(offline):
    pin = data_sources.find("starcoder2-3b").revision
    assert data_sources.pinned("bigcode/starcoder2-3b") == f"bigcode/starcoder2-3b@{pin}"
    for name in ("bigcode/starcoder2-3b@main", "google/codegemma-2b", "nobody/nothing"):
        assert data_sources.pinned(name) == name
    notebook = notebooks.find("table1_base_models")
    given = plan(notebook, PAPER, {"models": "bigcode/starcoder2-7b#chat, mini-small, openai:x"}, dry=True).values
    name, revision = split_revision(given["models"][0].removesuffix("#chat"))
    assert name == "bigcode/starcoder2-7b" and len(revision) == 40 and given["models"][0].endswith("#chat")
    assert given["models"][1:] == ["mini-small", "openai:x"]


def test_the_bounds_of_prompts_hold_for_the_committed_benchmark():
    tasks, index = load_tasks(paths.MINI / "cloudapi" / "tasks.jsonl"), load_index()
    assert max(len(task.prompt) for task in tasks) <= dry_run.TASK
    for design in set(DESIGNS) - {"full"}:
        assert max(len(docstring([spec], design)) for spec in index.specs) <= dry_run.DOCUMENT
    header = len(docstring([max(index.specs, key=lambda spec: len(spec.name + spec.client))], "name"))
    assert header + 5000 <= dry_run.FULL, "B.1 cuts the full documentation after 5,000 characters"


def test_prompts_grow_with_the_documentation_that_a_notebook_shows():
    plain, one, three, full = (dry_run.prompt_tokens(values) for values in (
        {}, {"precision": 50}, {"design": "name", "ks": [1, 3]}, {"designs": ["name", "full"]}))
    assert (plain, one, three, full) == (160, 920, 2440, 2280)


def test_the_batch_is_the_one_that_a_gpu_begins_with():
    assert dry_run.ROWS == local.ROWS
