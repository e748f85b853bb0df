"""The committed tasks: composition, diversity, prompts."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from lookuplab.cloudapi.prompts import task_prompt
from lookuplab.cloudapi.specs import ApiSpec, load_index
from lookuplab.cloudapi.tasks import COMPOSITION, frequency_class, load_tasks
from lookuplab.errors import UserError
from lookuplab.paths import write_lines


@pytest.fixture(scope="module")
def tasks():
    return load_tasks()


def test_a_count_decides_the_class():
    assert "".join(frequency_class(n)[0] for n in (0, 10, 11, 100, 101)) == "llmmh"


def test_the_committed_tasks_are_of_the_papers_numbers_and_kinds(tasks):
    assert Counter(task.frequency for task in tasks) == COMPOSITION
    assert max(Counter(task.target for task in tasks).values()) == 3
    assert len({task.prompt for task in tasks}) == len({task.id for task in tasks}) == 622
    assert {api for task in tasks for api in task.targets} <= load_index().by_id.keys()


def test_a_limit_spreads_over_the_classes_whatever_their_names(tmp_path):
    assert not load_tasks(limit=0) and len(load_tasks(limit=700)) == 622
    assert sorted(Counter(task.frequency for task in load_tasks(limit=7)).values()) == [2, 2, 3]
    with pytest.raises(UserError, match="a limit of -5 tasks"):
        load_tasks(limit=-5)
    rare = replace(load_tasks(limit=1)[0], frequency="rare")
    write_lines(tmp_path / "tasks.jsonl", [json.dumps(vars(rare))])
    assert load_tasks(tmp_path / "tasks.jsonl", 1) == [rare]


def test_the_prompts_are_the_papers():
    aws = ApiSpec("aws", "iam", "iam", "add_user_to_group", ())
    assert task_prompt(aws, "Add a user to an IAM group") == (
        'import boto3\n\n# initialize iam client\nclient = boto3.client("iam")\n\n'
        "# Add a user to an IAM group\nresponse = client."
    )
    azure = ApiSpec("azure", "blob", "ContainerClient", "", (), module="azure.storage.blob")
    assert task_prompt(azure, "Mark blobs or snapshots for deletion") == (
        "from azure.storage.blob import ContainerClient\n"
        "from consts import client_args, client_kwargs\n\n# initialize blob client\n"
        "client = ContainerClient(*client_args, **client_kwargs)\n\n"
        "# Mark blobs or snapshots for deletion\nresponse = client."
    )
