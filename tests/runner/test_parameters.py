"""What a notebook is given is checked before any kernel starts: bad input is one line and exit code 2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.errors import UserError
from lookuplab.runner import notebooks, profiles
from lookuplab.runner.notebooks import declared_parameters
from lookuplab.runner.plan import parse_value, plan, sweep_values

plain = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.none(),
                  st.lists(st.integers()))


@given(st.dictionaries(st.from_regex(r"[a-z]{3,8}_", fullmatch=True), plain))
def test_declared_parameters_are_the_literals_of_the_cell(values):
    source = "".join(f"{name} = {value!r}  # why\n" for name, value in values.items())
    assert declared_parameters(source, "here") == values


@pytest.mark.parametrize("source", ["import os", "x = print(1)", "x = y", "x, y = 1, 2", "x = ("])
def test_a_parameters_cell_with_more_than_plain_values_is_refused(source):
    with pytest.raises(UserError, match="more than plain values"):
        declared_parameters(source, "here")


@pytest.mark.parametrize(("arguments", "message"), [
    (["run", "coutns"], "error: no notebook 'coutns'; did you mean 'counts'?"),
    (["run", "counts", "-p", "task=3"], "no parameter 'task' (from the command line); did you mean 'tasks'?"),
    (["run", "counts", "-p", "tasks=many"], "'tasks' is a whole number (here 3), but the command line gives 'many'"),
    (["run", "counts", "-p", "tasks=1.5"], "parameter 'tasks' is a whole number"),
    (["run", "counts", "-p", "tasks=true"], "parameter 'tasks' is a whole number"),
    (["run", "counts", "-p", "tasks"], "error: -p 'tasks': write name=value"),
    (["run", "counts", "-p", "tasks=1", "-p", "tasks=2"], "error: -p tasks=... is given twice"),
    (["run", "counts", "--profile", "papre"], "error: no profile 'papre'; did you mean 'paper'?"),
    (["run", "counts", "-p", "models=./no such model"], "which does not exist"),
    (["run", "counts", "-p", "models=data/mini/models/none"], "names 'data/mini/models/none', which does not exist"),
    (["run", "counts", "-p", "models=data/x-base,data/x-tool"], "names 'data/x-base', 'data/x-tool', which do not exist"),
    (["run", "counts", "-p", "models=nobody/nothing"], "model 'nobody/nothing' is not in the local cache"),
    (["run", "counts", "-p", "models=mini-huge"], "no mini model 'mini-huge'; there are: none yet"),
    (["run", "counts", "-p", "models=."], "is no checkpoint (a folder with config.json)"),
    (["run", "counts", "-p", "models="], "parameter 'models' names no model"),
    (["run", "counts", "-p", "some_file=absent.jsonl"], "parameter 'some_file' names 'absent.jsonl', which does not exist"),
    (["run"], "error: Missing argument 'NOTEBOOK' (see `"),
    (["run", "counts", "--taks", "3"], "error: No such option '--taks'"),
    (["reproduce", "-j", "0"], "0 is not in the range x>=1"),
    (["data", "gte", "x"], "error: no command 'gte'; did you mean 'get'?"),
    (["sweep", "counts", "-p", "tasks=1,two"], "gives 'two'"),
    (["sweep", "counts", "-p", "tasks="], "gives None, nothing"),
    (["reproduce", "demos"], "error: no paper 'demos'; did you mean 'demo'?"),
    (["rn", "counts"], "error: no command 'rn'; did you mean 'run'?"),
])
def test_bad_input_is_one_line_and_exit_code_2(kit, monkeypatch, arguments, message):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    kit.notebook("counts", parameters='profile = "mini"\ntasks = 3\nmodels = ["http://localhost/v1#any"]\nsome_file = ""\n')
    code, said = kit.call(*arguments)
    assert code == 2
    assert message in said
    assert said.count("\n") == 1
    assert not (kit.root / "runs").exists(), "nothing may have started"


@pytest.mark.parametrize(("given", "message"), [
    ("precision=-1", "parameter 'precision' is -1; it must be from 0 to 100"),
    ("precision=101", "parameter 'precision' is 101"),
    ("precisions=[50, 120]", "parameter 'precisions' is 120"),
    ("precisions=[]", "parameter 'precisions' is empty; give at least one value"),
    ("precisions=[50, 50]", "parameter 'precisions' holds 50 twice"),
    ("threshold=1.5", "parameter 'threshold' is 1.5; it must be from 0 to 1"),
    ("threshold=-0.1", "parameter 'threshold' is -0.1"),
    ("threshold=.nan", "parameter 'threshold' is nan"),
    ("gates=[0.5, 2]", "parameter 'gates' is 2"),
    ("k=0", "parameter 'k' is 0; it must be 1 or more"),
    ("limit=-3", "parameter 'limit' is -3; it must be 0 or more"),
])
@pytest.mark.parametrize("how", [("run",), ("run", "--dry-run"), ("sweep",)])
def test_a_number_out_of_its_range_is_refused_before_anything_starts(kit, how, given, message):
    parameters = "precision = 50\nprecisions = [50]\nthreshold = 0.8\ngates = [0.5]\nk = 1\nlimit = 0\n"
    kit.notebook("counts", "raise ValueError", parameters=parameters)
    code, said = kit.call(*how, "counts", "-p", given)
    assert code == 2 and message in said and said.count("\n") == 1
    assert not (kit.root / "runs").exists(), "nothing may have started"


def test_the_ends_of_a_range_are_allowed(kit):
    parameters = "precisions = [50]\nthreshold = 0.8\ngates = [0.5]\nk = 1\nlimit = 0\n"
    notebook = notebooks.read(kit.notebook("counts", parameters=parameters))
    given = {"precisions": "0,100", "threshold": "1", "gates": "1", "k": "1", "limit": "0"}
    assert plan(notebook, profiles.load("mini"), given).values == {
        "precisions": [0, 100], "threshold": 1.0, "gates": [1.0], "k": 1, "limit": 0}


def test_values_take_the_declared_type(kit):
    declared = "a = 0.5\nb = 'x'\nc = ['p']\nd = True\ne = None\nf = [1]\n"
    notebook = notebooks.read(kit.notebook("counts", parameters=declared))
    given = {"a": "2", "b": "3", "c": "q, r", "d": "false", "e": "7", "f": "[4, 5]"}
    values = {name: parse_value(notebook, name, text) for name, text in given.items()}
    assert values == {"a": 2.0, "b": "3", "c": ["q", "r"], "d": False, "e": 7, "f": [4, 5]}
    assert isinstance(values["a"], float)


def test_a_number_may_be_written_with_an_exponent(kit):
    notebook = notebooks.read(kit.notebook("counts", parameters="rate = 0.5\n"))
    assert parse_value(notebook, "rate", "1e-3") == 0.001


def test_a_path_is_meant_from_where_the_command_was_typed(kit, monkeypatch, tmp_path):
    notebook = notebooks.read(kit.notebook("counts", parameters="model = 'x/y'\n"))
    (tmp_path / "here" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert {parse_value(notebook, "model", text) for text in ("./mine", "mine")} == {str(tmp_path / "here" / "mine")}


def test_a_notebook_is_found_by_path_by_name_and_by_paper_and_name(kit):
    path = kit.notebook("counts")
    found = [notebooks.find(name).path for name in (str(path), "counts", "demo/counts", "notebooks/demo/counts.ipynb")]
    assert found == [path] * 4


def test_a_name_in_two_papers_must_say_which(kit):
    kit.notebook("counts")
    kit.notebook("counts", paper="other")
    with pytest.raises(UserError, match="demo/counts or other/counts"):
        notebooks.find("counts")


def test_a_file_that_is_no_notebook_is_told(kit):
    file = kit.root / "broken.ipynb"
    file.write_text("{")
    code, said = kit.call("run", str(file))
    assert code == 2 and "is not a notebook" in said


def test_a_profile_sets_only_what_a_notebook_declares(kit):
    file = kit.root / "own.yaml"
    file.write_text("parameters: {tasks: 7, elsewhere: 1}\nnotebooks: {demo/counts: {rate: 1}}\n")
    job = plan(notebooks.read(kit.notebook("counts")), profiles.load(str(file)))
    assert job.parameters == {"profile": "own", "tasks": 7, "rate": 1.0}


@pytest.mark.parametrize(("content", "message"), [
    ("parameters: {tasks: many}", "profile 'own' gives 'many', a text"),
    ("notebooks: {demo/counts: {task: 1}}", r"no parameter 'task' \(from profile 'own'\)|no parameter 'task'"),
    ("surprise: 1", "surprise; it may hold"),
    ("3: 1", "3; it may hold"),
    ("parameters: 3", "parameters is 3; it must be a mapping"),
    ("needs: corpus", "needs is 'corpus'; it must be a list"),
    ("committed: maybe", "committed is 'maybe'; it must be true or false"),
    ("notebooks: {demo/counts: 3}", "demo/counts must hold a mapping"),
    ("a: [", "is not YAML"),
])
def test_a_wrong_profile_is_refused(kit, content, message):
    file = kit.root / "own.yaml"
    file.write_text(content)
    with pytest.raises(UserError, match=message):
        plan(notebooks.read(kit.notebook("counts")), profiles.load(str(file)))


def test_own_parameters_never_overwrite_committed_figures(kit):
    notebook = notebooks.read(kit.notebook("counts"))
    places = [plan(notebook, profiles.load(name), given).figures
              for name, given in (("mini", {}), ("mini", {"tasks": "4"}), ("smoke", {}))]
    assert places == [kit.root / "figures", kit.root / "runs" / "figures", kit.root / "runs" / "figures"]


def test_a_profile_names_the_data_that_is_missing(kit):
    (kit.root / "data").mkdir()
    (kit.root / "data" / "sources.toml").write_text(
        '[corpus]\nkind = "file"\naddress = "http://localhost/c"\nlicence = "x"\npurpose = "y"\n'
        f'size = 1\nsha256 = "{"0" * 64}"\n')
    (kit.root / "own.yaml").write_text("needs: [corpus]\n")
    kit.notebook("counts")
    code, said = kit.call("run", "counts", "--profile", str(kit.root / "own.yaml"))
    assert code == 2 and "run `lookuplab data get corpus`" in said


def test_a_profile_says_how_to_make_the_file_that_is_missing(kit):
    (kit.root / "own.yaml").write_text("parameters: {some_file: data/mine.jsonl}\nhints: {some_file: make it with\n `x`}")
    kit.notebook("counts", parameters='profile = "mini"\nsome_file = "data/other.jsonl"\n')
    code, said = kit.call("run", "counts", "--profile", str(kit.root / "own.yaml"))
    assert code == 2 and said.count("\n") == 1
    assert "parameter 'some_file' names 'data/mine.jsonl', which does not exist; make it with `x`" in said
    code, said = kit.call("run", "counts", "--profile", str(kit.root / "own.yaml"), "-p", "some_file=data/third.jsonl")
    assert code == 2 and "make it" not in said, "the hint is about the profile's own file"


def test_the_paper_profile_says_how_its_benchmark_is_made(kit):
    """The mini benchmark's classes come from the mini corpus and mean nothing for a model that others trained."""
    kit.notebook("counts", parameters='profile = "mini"\nmodel = "mini-small"\ntasks_file = "data/mini/tasks.jsonl"\n')
    code, said = kit.call("run", "counts", "--profile", "paper")
    assert code == 2 and said.count("\n") == 1
    for words in ("data frequencies CODE_CORPUS -o stack.csv", "data build benchmark --frequencies stack.csv -o "
                  "data/downloads/cloudapibench/tasks.jsonl", "-p tasks_file=data/mini/cloudapi/tasks.jsonl"):
        assert words in said
    assert not (kit.root / "runs").exists(), "nothing may have started"


def test_a_file_parameter_is_meant_from_where_the_command_was_typed(kit, monkeypatch, tmp_path):
    notebook = notebooks.read(kit.notebook("counts", parameters="tasks_file = 'x'\n"))
    (tmp_path / "mine.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    assert parse_value(notebook, "tasks_file", "mine.jsonl") == str(tmp_path / "mine.jsonl")


def test_a_text_that_looks_like_a_path_is_one_where_it_is_there_and_a_word_stays_a_word(kit, monkeypatch, tmp_path):
    notebook = notebooks.read(kit.notebook("counts", parameters="corpus = 'mini'\n"))
    for name in ("mine.jsonl", "mini"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    given = ["mine.jsonl", "other.jsonl", "mini"]
    assert [parse_value(notebook, "corpus", one) for one in given] == [str(tmp_path / "mine.jsonl"), *given[1:]]


def test_a_sweep_is_the_cartesian_product_and_brackets_hold_together():
    assert sweep_values([("a", "1,2"), ("b", "[x,y],[z]")]) == [
        {"a": "1", "b": "[x,y]"}, {"a": "1", "b": "[z]"}, {"a": "2", "b": "[x,y]"}, {"a": "2", "b": "[z]"}]


@pytest.mark.parametrize("command", [
    "", "run", "reproduce", "sweep", "verify", "claims", "score", "score cloudapi", "train", "train mini", "train toolgen",
    "train mini-toolgen", "train mini-rankers", "train mini-questions", "score toolgen", "score ds1000", "data", "data list",
    "data get", "data build", "data build cloudapi", "data build benchmark",
    "data build problems", "data build snippets", "data mark", "data frequencies",
])
def test_every_command_shows_help_with_examples(kit, command):
    code, said = kit.call(*command.split(), "--help")
    assert code == 0 and f"  lookuplab {command}".rstrip() in said.partition("\n")[2]
