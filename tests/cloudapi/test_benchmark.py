"""The benchmark: composition, diversity, targets, reproducibility."""

from collections import Counter

import pytest

from lookuplab.cloudapi import benchmark
from lookuplab.cloudapi.benchmark import COMPOSITION, frequency_class, load_tasks
from lookuplab.cloudapi.comments import leaks_name
from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter, load_index
from lookuplab.errors import UserError


@pytest.fixture(scope="module")
def tasks():
    return load_tasks()


def test_class_sizes_are_the_papers(tasks):
    assert Counter(task.frequency for task in tasks) == COMPOSITION


def test_class_borders_are_0_10_100():
    assert [frequency_class(n) for n in (0, 10, 11, 100, 101)] == ["low", "low", "medium", "medium", "high"]


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


def test_no_comment_gives_a_target_away(tasks):
    leaks = [task.id for task in tasks for api in task.targets[:1] if leaks_name(task.comment, api.rsplit(".", 1)[1])]
    assert leaks == []


def test_prompts_end_just_before_the_name(tasks):
    assert all(task.prompt.endswith("\nresponse = client.") and f"# {task.comment}\n" in task.prompt for task in tasks)


def test_targets_exist_in_the_index(tasks):
    index = load_index()
    assert all(api in index.by_id for task in tasks for api in task.targets)


def test_the_committed_tasks_are_rebuilt_byte_for_byte(tasks, tmp_path):
    from lookuplab.mini.corpus import assign

    index = load_index()
    benchmark.write_tasks(benchmark.build(index, assign(index)), tmp_path / "tasks.jsonl")
    assert (tmp_path / "tasks.jsonl").read_bytes() == benchmark.TASKS.read_bytes()


def _api(name, description, service="s3"):
    return ApiSpec("aws", service, service, name, (Parameter("Key", required=True),), description=description)


def test_versions_and_equal_descriptions_are_acceptable_targets():
    a, b = _api("list_objects", "Returns objects."), _api("list_objects_v2", "Returns more objects.")
    c, d = _api("drop_object", "Deletes an object."), _api("erase_object", "Deletes an  object.")
    index = ApiIndex([a, b, c, d])
    assert benchmark.acceptable_targets(a, index) == (a.id, b.id)
    assert benchmark.acceptable_targets(c, index) == (c.id, d.id)


def test_a_notice_shared_by_a_whole_service_makes_no_equals():
    notice = "This operation is not supported by directory buckets. "
    a, b = _api("get_place", notice + "Returns the Region of it."), _api("drop_rule", notice + "Deletes the rule of it.")
    assert benchmark.acceptable_targets(a, ApiIndex([a, b])) == (a.id,)


def test_no_task_accepts_more_than_two_apis(tasks):
    assert max(len(task.targets) for task in tasks) <= 2


def test_ambiguous_flagged_and_single_word_names_are_not_sampled():
    good = _api("delete_key", "Deletes a key of yours.")
    index = ApiIndex([good, _api("tag_key", "Tags a key of yours."), _api("tag_key", "Tags a key of yours.", "kms"),
                      _api("publish", "Publishes a key of yours."),
                      ApiSpec("aws", "s3", "s3", "get_key", (), description="Gets a key of yours.", flags=("autofilled",))])
    assert benchmark.unambiguous(index) == [good]


def test_too_small_a_frequency_table_is_refused():
    with pytest.raises(UserError, match="only 0 of 137 high-frequency aws tasks"):
        benchmark.build(ApiIndex([_api("delete_key", "Deletes a key of yours.")]), {})


def test_a_negative_limit_is_refused():
    with pytest.raises(UserError, match="limit is -1"):
        load_tasks(limit=-1)


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": 1}\n')
    with pytest.raises(UserError, match=r"tasks\.jsonl, line 1: not a CloudAPIBench task"):
        load_tasks(path)


def test_the_aws_prompt_is_the_papers():
    spec = _api("add_user_to_group", "", "iam")
    assert task_prompt(spec, "Add a user to an IAM group") == (
        'import boto3\n\n# initialize iam client\nclient = boto3.client("iam")\n\n# Add a user to an IAM group\nresponse = client.')


def test_the_azure_prompt_is_the_papers():
    spec = ApiSpec("azure", "blob", "ContainerClient", "delete_blobs", (), module="azure.storage.blob")
    assert task_prompt(spec, "Mark blobs or snapshots for deletion") == (
        "from azure.storage.blob import ContainerClient\nfrom consts import client_args, client_kwargs\n\n# initialize blob client\n"
        "client = ContainerClient(*client_args, **client_kwargs)\n\n# Mark blobs or snapshots for deletion\nresponse = client.")


def test_the_data_card_states_the_numbers_of_the_tasks(tasks):
    card = (benchmark.TASKS.parent / "README.md").read_text("utf-8")
    for name in (*COMPOSITION, "all"):
        part = [task for task in tasks if name in (task.frequency, "all")]
        required = Counter(min(task.n_required, 5) for task in part)
        counts = [task.count_name for task in part]
        cells = [name, len(part), *(sum(task.provider == provider for task in part) for provider in ("aws", "azure")),
                 len({task.target for task in part}), len({(task.provider, task.service) for task in part}),
                 *(required[n] for n in range(6)), f"{min(counts)} to {max(counts)}"]
        assert f"| {' | '.join(map(str, cells))} |" in card, name


def test_the_data_card_states_how_the_tasks_came_about(tasks):
    from lookuplab.mini.corpus import POOLS, RANGES

    card = " ".join((benchmark.TASKS.parent / "README.md").read_text("utf-8").split())
    pool = Counter(spec.provider for spec in benchmark.unambiguous(load_index()))
    prompts = Counter(Counter(task.target for task in tasks).values())
    words = [f"{pool['aws']:,} of AWS, {pool['azure']} of Azure", f"{prompts[1]} APIs have one task, {prompts[2]} two and {prompts[3]} three",
             f"{sum(not task.count_name for task in tasks)} of the low tasks ask for an API that the corpus never calls",
             f"{sum(len(task.targets) == 2 for task in tasks)} tasks have two targets, none has more"]
    high, medium, low = (POOLS[name] for name in COMPOSITION)
    words += [f"high {high['aws']} AWS and {high['azure']} Azure, medium {medium['aws']} and {medium['azure']}, "
              f"low {low['aws']:,} and {low['azure']}",
              "log-uniform between " + ", ".join("{} and {}".format(*RANGES[name]) for name in COMPOSITION)]
    assert [text for text in words if text not in card] == []


def test_the_data_card_names_every_field():
    card = (benchmark.TASKS.parent / "README.md").read_text("utf-8").split("## Benchmark")[1]
    assert [name for name in benchmark.Task.__dataclass_fields__ if f"`{name}`" not in card] == []


def test_both_counts_are_equal_where_they_are_assigned(tasks):
    assert all(task.count_name == task.count_bound for task in tasks)
