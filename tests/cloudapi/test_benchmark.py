"""The benchmark: composition, diversity, targets, reproducibility."""

from collections import Counter

import pandas
import pytest
from click.testing import CliRunner

from lookuplab.cli import cli
from lookuplab.cloudapi import benchmark
from lookuplab.cloudapi.benchmark import COMPOSITION, frequency_class, load_tasks
from lookuplab.cloudapi.comments import leaks_name
from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter, load_index
from lookuplab.errors import UserError


@pytest.fixture(scope="module")
def tasks():
    return load_tasks()


def _api(name, description, flags=()):
    parameters = (Parameter("Key", required=1),)
    return ApiSpec("aws", "s3", "s3", name, parameters, description=description, flags=flags)


def test_class_sizes_are_the_papers(tasks):
    assert Counter(task.frequency for task in tasks) == COMPOSITION


def test_class_borders_are_0_10_100():
    found = [frequency_class(n) for n in (0, 10, 11, 100, 101)]
    assert found == ["low", "low", "medium", "medium", "high"]


def test_every_task_is_in_the_class_of_its_count(tasks):
    assert all(frequency_class(task.count_name) == task.frequency for task in tasks)


def test_an_api_has_at_most_three_prompts_all_different(tasks):
    assert max(Counter(task.target for task in tasks).values()) <= 3
    assert len({task.prompt for task in tasks}) == len({task.id for task in tasks}) == 622


def test_every_class_has_both_providers_and_many_numbers_of_required_arguments(tasks):
    for frequency in COMPOSITION:
        members = [task for task in tasks if task.frequency == frequency]
        assert {task.provider for task in members} == {"aws", "azure"}
        assert {0, 1, 2, 3, 4} <= {task.n_required for task in members}


def test_no_comment_gives_the_target_away(tasks):
    assert [t.id for t in tasks if leaks_name(t.comment, t.target.rpartition(".")[2])] == []


def test_targets_exist_in_the_index_and_are_at_most_two(tasks):
    assert {api for task in tasks for api in task.targets} <= load_index().by_id.keys()
    assert max(len(task.targets) for task in tasks) == 2


def test_the_command_rebuilds_the_committed_tasks_byte_for_byte(tmp_path):
    out = tmp_path / "tasks.jsonl"
    result = CliRunner().invoke(cli, ["data", "build", "benchmark", "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == benchmark.TASKS.read_bytes()


def test_versions_and_equal_descriptions_are_acceptable_targets():
    a, b = _api("list_objects", "Returns objects."), _api("list_objects_v2", "Returns others.")
    c, d = _api("drop_thing", "Deletes an object."), _api("erase_thing", "Deletes an  object.")
    index = ApiIndex([a, b, c, d])
    assert benchmark.acceptable_targets(a, index) == (a.id, b.id)
    assert benchmark.acceptable_targets(d, index) == (d.id, c.id)


def test_a_notice_shared_by_a_whole_service_makes_no_equals():
    notice = "This operation is not supported by directory buckets. "
    a = _api("get_place", notice + "Returns the Region of it.")
    b = _api("drop_rule", notice + "Deletes the rule of it.")
    assert benchmark.acceptable_targets(a, ApiIndex([a, b])) == (a.id,)


def test_flagged_operations_and_those_without_a_verb_are_not_sampled():
    good = _api("delete_key", "Deletes a key of yours.")
    flagged = _api("get_key", "Gets a key of yours.", flags=("autofilled",))
    assert benchmark.unambiguous(ApiIndex([good, flagged, _api("key_of", "A key.")])) == [good]


def test_too_small_a_frequency_table_is_refused():
    index = ApiIndex([_api("delete_key", "Deletes a key of yours.")])
    with pytest.raises(UserError, match="only 0 of 137 high-frequency aws tasks"):
        benchmark.build(index, pandas.DataFrame({"count_name": {}, "count_bound": {}}))


def test_a_table_of_frequencies_decides_the_classes(tmp_path):
    """Every API of the index in one of three frequencies."""
    operations = [spec.id for spec in load_index().specs if spec.operation]
    rows = [f"{api},{(500, 50, 0)[number % 3]},5" for number, api in enumerate(operations)]
    table, out = tmp_path / "stack.csv", tmp_path / "new folder" / "tasks.jsonl"
    table.write_text("\n".join(["api,count_name,count_bound", *rows]) + "\n")
    arguments = ["data", "build", "benchmark", "--frequencies", str(table), "-o", str(out)]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    made = load_tasks(out)
    assert {(task.frequency, task.count_name, task.count_bound) for task in made} == {
        ("high", 500, 5),
        ("medium", 50, 5),
        ("low", 0, 5),
    }


@pytest.mark.parametrize("limit", [0, 7, 622])
def test_a_limit_spreads_over_the_classes(limit):
    classes = Counter(task.frequency for task in load_tasks(limit=limit))
    assert classes.total() == limit
    assert limit == 622 or max(classes.values(), default=0) <= limit // 3 + 1


def test_a_file_without_tasks_is_refused(tmp_path):
    (tmp_path / "tasks.jsonl").write_text('{"id": 1}\n')
    for name in ("tasks.jsonl", "absent.jsonl"):
        with pytest.raises(UserError, match="holds no CloudAPIBench tasks"):
            load_tasks(tmp_path / name)


def test_the_aws_prompt_is_the_papers(tasks):
    spec = ApiSpec("aws", "iam", "iam", "add_user_to_group", ())
    assert task_prompt(spec, "Add a user to an IAM group") == (
        'import boto3\n\n# initialize iam client\nclient = boto3.client("iam")\n\n'
        "# Add a user to an IAM group\nresponse = client."
    )


def test_the_azure_prompt_is_the_papers():
    spec = ApiSpec("azure", "blob", "ContainerClient", "", (), module="azure.storage.blob")
    assert task_prompt(spec, "Mark blobs or snapshots for deletion") == (
        "from azure.storage.blob import ContainerClient\n"
        "from consts import client_args, client_kwargs\n\n# initialize blob client\n"
        "client = ContainerClient(*client_args, **client_kwargs)\n\n"
        "# Mark blobs or snapshots for deletion\nresponse = client."
    )


def test_the_data_card_states_the_numbers_of_the_tasks(tasks):
    card = (benchmark.TASKS.parent / "README.md").read_text("utf-8")
    for name in (*COMPOSITION, "all"):
        part = [task for task in tasks if name in (task.frequency, "all")]
        required = Counter(min(task.n_required, 5) for task in part)
        counts = [task.count_name for task in part]
        providers = Counter(task.provider for task in part)
        cells = [name, len(part), providers["aws"], providers["azure"]]
        cells += [len({t.target for t in part}), len({(t.provider, t.service) for t in part})]
        cells += [*(required[n] for n in range(6)), f"{min(counts)} to {max(counts)}"]
        assert f"| {' | '.join(map(str, cells))} |" in card, name
    assert [n for n in benchmark.Task.__dataclass_fields__ if f"`{n}`" not in card] == []
