"""Comments that a model writes: what is kept of its answers, and the way from a real (tiny) model to a benchmark."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from lookuplab.cli import cli
from lookuplab.cloudapi.comment_writer import model_comments, parse_comments
from lookuplab.cloudapi.specs import ApiSpec, load_index
from lookuplab.models import Completion

ANSWER = """ Add a user to an IAM group
# Put this user into the group
# put this user into the group.
# Call add_user_to_group
# User
2. Make the user a member of the given group
# A fourth one, which is too many

Description: the model goes on with an example of its own
# not a comment of this API"""


def test_at_most_three_distinct_comments_are_kept_of_an_answer():
    assert parse_comments(ANSWER, "add_user_to_group") == [
        "Add a user to an IAM group", "Put this user into the group", "Make the user a member of the given group"]


@pytest.mark.parametrize("line", ["addUserToGroup for me", "AddUserToGroup please", "the add-user-to-group call"])
def test_a_comment_with_the_name_in_any_case_style_is_dropped(line):
    assert parse_comments(f" {line}\n# Put this user into the group", "add_user_to_group") == [
        "Put this user into the group"]


def test_an_answer_of_nothing_gives_no_comment():
    assert parse_comments("", "add_user_to_group") == [] == parse_comments("\n\n# too late", "add_user_to_group")


class Scribe:
    """Answers as the few-shot prompt shows: three comments made of the description."""

    name, identity = "scribe", {"name": "scribe"}

    def generate(self, requests, decoding):
        assert "\nDescription:" in decoding.stop and decoding.temperature == 0
        for prompt, sample in requests:
            words = prompt.text.rsplit("Description: ", 1)[1].removesuffix("\n#").rstrip(".").lower()
            text = f" Please {words}\n# Kindly {words}\n# Now {words}\n\nDescription: more"
            yield [Completion(prompt.id, sample, text, (text,), (0,), (0.0,), "stop", 1)]


def test_each_description_is_asked_for_and_answered_by_api_id():
    apis = [ApiSpec("aws", "kms", "kms", "encrypt_it", (), description="Hides the text."),
            ApiSpec("aws", "s3", "s3", "put_it", (), description="Stores the thing.")]
    comments = model_comments(Scribe(), apis, store=False)
    assert comments == {
        apis[0].id: ["Please hides the text", "Kindly hides the text", "Now hides the text"],
        apis[1].id: ["Please stores the thing", "Kindly stores the thing", "Now stores the thing"]}


def test_a_real_model_answers_and_its_answers_are_kept(tmp_path, monkeypatch):
    from lookuplab.models import load

    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "models"))
    import tiny_checkpoint

    config = tiny_checkpoint.save(tmp_path / "tiny") / "config.json"
    config.write_text(config.read_text().replace('"max_position_embeddings": 512', '"max_position_embeddings": 2048'))
    model = load(str(config.parent), dtype="float32")
    api = next(spec for spec in load_index().specs if len(spec.description) > 20)
    api = ApiSpec(api.provider, api.service, api.client, api.name, (), description=api.description[:40])
    first = model_comments(model, [api], store=tmp_path / "store.sqlite")
    assert list(first) == [api.id] and len(first[api.id]) <= 3
    model.generate = None  # a second call must not need it
    assert model_comments(model, [api], store=tmp_path / "store.sqlite") == first


def test_the_benchmark_takes_a_models_comments_and_a_table_of_counts(tmp_path, monkeypatch):
    table, out = _counts(tmp_path), tmp_path / "new folder" / "tasks.jsonl"
    monkeypatch.setattr("lookuplab.models.load", lambda name: Scribe())
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "store.sqlite"))
    arguments = ["data", "build", "benchmark", "--frequencies", str(table), "--comments-model", "any", "-o", str(out)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    from lookuplab.cloudapi.benchmark import COMPOSITION, load_tasks

    tasks = load_tasks(out)
    assert len(tasks) == sum(COMPOSITION.values())
    openings = {task.comment.split()[0] for task in tasks}
    assert {"Please", "Kindly", "Now"} <= openings, "the comments are not the model's"
    assert {task.count_bound for task in tasks} == {5} and {task.count_name for task in tasks} == {0, 50, 500}


def _counts(folder):
    """Every API of the index in one of three frequencies, as `lookuplab data frequencies` would write them."""
    rows = [f"{spec.id},{(500, 50, 0)[number % 3]},5" for number, spec in enumerate(load_index().specs)
            if spec.operation]
    table = folder / "stack.csv"
    table.write_text("\n".join(["api,count_name,count_bound", *rows]) + "\n")
    return table


@pytest.mark.parametrize(("content", "words"), [
    ("api,count\nx,1\n", "no column count_name, count_bound"),
    ("api,count_name,count_bound\nx,many,1\n", "line 2: count_name is 'many'"),
    ("api,count_name,count_bound\naws/s3.s3.put_object,1,1\n", "count frequencies over more code"),
])
def test_a_bad_table_of_counts_is_one_line_and_nothing_is_written(tmp_path, content, words):
    (tmp_path / "bad.csv").write_text(content)
    result = CliRunner().invoke(cli, ["data", "build", "benchmark", "--frequencies", str(tmp_path / "bad.csv"),
                                      "-o", str(tmp_path / "tasks.jsonl")])
    assert result.exit_code == 2
    assert words in result.stderr and result.stderr.count("\n") == 1, result.stderr
    assert not (tmp_path / "tasks.jsonl").exists()
