"""Public counts: the rule of the classes, how sure they are, and the tasks made from them."""

import gzip
import json
from collections import Counter

import numpy as np
import pandas
import pytest
from click.testing import CliRunner

from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.cloudapi.tasks import COMPOSITION, load_tasks
from lookuplab.errors import UserError
from recipes.cloudapi import frequency
from recipes.cloudapi.comments import leaks_name, normalised
from recipes.cloudapi.tasks import corrected
from recipes.cloudapi.tasks import main as tasks_recipe

FOLDER = frequency.FREQUENCIES.parent
SEED = int("f15c8efd", 16)  # of the commit that added the card: data/public/cloudapi/README.md


@pytest.fixture(scope="module")
def table():
    return frequency.read_frequencies(frequency.FREQUENCIES)


@pytest.fixture(scope="module")
def tasks():
    return load_tasks(FOLDER / "tasks.jsonl")


def named(numbers, flags=(), provider="aws"):
    """The class of one API that so many repositories name, name beside its client, and bind."""
    api = ApiSpec(provider, "s3", "s3", "do_it", (), flags=flags)
    [found] = frequency.classes(np.array(numbers)[:, None], ApiIndex([api]))
    return [*frequency.FREQUENCY_CLASSES, ""][found]


@pytest.mark.parametrize(
    ("numbers", "aws", "azure"),
    [
        ((0, 0, 0), "low", "low"),
        ((1, 1, 0), "medium", "low"),
        ((2, 1, 0), "medium", "medium"),
        ((6, 2, 0), "medium", "medium"),
        ((7, 3, 0), "high", "medium"),
        ((11, 4, 0), "high", "high"),
        ((1, 0, 0), "", "low"),  # a homonym: nobody who names it has a client of its service
        ((7, 2, 2), "", ""),
    ],
)
def test_the_class_is_that_of_the_repositories_of_which_a_third_show_the_client(
    numbers, aws, azure
):
    assert (named(numbers), named(numbers, provider="azure")) == (aws, azure)


@pytest.mark.parametrize(
    ("flag", "numbers", "expected"),
    [
        ("generic_name", (90, 90, 7), "high"),
        ("generic_name", (90, 90, 6), ""),
        ("generic_name", (5, 1, 1), "medium"),
        ("generic_name", (0, 0, 0), "low"),
        ("shared_name", (90, 90, 1), "high"),
        ("shared_name", (90, 90, 0), ""),
    ],
)
def test_a_name_of_several_clients_must_be_bound(flag, numbers, expected):
    assert named(numbers, (flag,)) == expected


def test_stability_is_the_share_of_resamples_that_keep_the_class():
    """Two repositories, one of which calls the API: drawn again, it is missing in a quarter of the
    draws (0 0), once in a half, twice in a quarter; one or two repositories are medium. Nobody
    calls the other API: low in every draw.
    """
    index = ApiIndex([ApiSpec("aws", "s3", "s3", name, ()) for name in ("do_it", "drop_it")])
    found = np.zeros((3, 2, 2), bool)
    found[:, 0, 0] = True
    kept = frequency.stability(found, index, draws=4000)
    assert kept[0] == pytest.approx(0.75, abs=0.03) and kept[1] == 1


def test_the_table_is_what_the_counts_by_repository_add_up_to(table):
    index, sums = load_index(), Counter()
    table = table.loc[[spec.id for spec in index.operations]]
    with gzip.open(FOLDER / frequency.BY_REPOSITORY, "rt") as lines:
        for row in map(json.loads, lines):
            sums.update({(provider, name): n for provider, name, n in row["names"]})
    assert [*table.count_name] == [sums[spec.provider, spec.name] for spec in index.operations]
    found = frequency.by_repository(FOLDER / frequency.BY_REPOSITORY, index)
    names = np.array([*frequency.FREQUENCY_CLASSES, ""])[
        frequency.classes(found.sum(axis=1), index)
    ]
    assert found.shape[1] == len(pandas.read_csv(FOLDER / "sources.csv")) == 405
    assert (table["class"] == names).all()
    drawn = frequency.stability(found, index, draws=100)
    assert np.abs(drawn - table.class_stability).max() < 0.25


def test_apis_whose_class_the_paper_states_have_it_but_for_one(table):
    fabric = "servicefabric.ServiceFabricClientAPIs"
    stated = {
        "aws/iam.iam.add_user_to_group": "high",
        "aws/networkmanager.networkmanager.get_network_resources": "low",
        "azure/blob.ContainerClient.delete_blobs": "medium",
        "azure/callautomation.CallConnectionClient.send_dtmf_tones": "low",
        f"azure/{fabric}.get_deployed_application_health": "low",
        f"azure/{fabric}.get_compose_deployment_upgrade_progress": "low",
    }
    assert table["class"][list(stated)].to_dict() == stated
    assert table["class"]["aws/autoscaling.autoscaling.complete_lifecycle_action"] == "medium"


def test_comments_that_fit_no_task_are_refused_in_one_line(tmp_path, tasks):
    path = tmp_path / "comments.csv"
    path.write_text("id,comment,targets\nx#1,Do it,\n")
    with pytest.raises(UserError, match=r"holds no comments for these tasks.*'x#1'"):
        corrected(tasks, path, load_index())


def test_the_command_rebuilds_the_committed_tasks_and_says_which_provider_is_short(tmp_path):
    out = tmp_path / "tasks.jsonl"
    options = {"frequencies": frequency.FREQUENCIES, "comments": FOLDER / "comments.csv"}
    options |= {"seed": SEED, "output": out}
    words = [f"--{name}={value}" for name, value in options.items()]
    result = CliRunner().invoke(tasks_recipe, words)
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == (FOLDER / "tasks.jsonl").read_bytes()
    said = "high: azure has APIs for 53 of its 68 tasks; the other provider gives 15 more"
    assert said in result.output


def test_no_task_gives_the_name_away_and_stable_apis_come_first(tasks):
    assert Counter(task.frequency for task in tasks) == COMPOSITION
    for task in tasks:
        spec = load_index().by_id[task.target]
        assert not leaks_name(task.comment, spec.name), task.id
        assert normalised(task.comment) not in normalised(spec.description), task.id
    frame = pandas.DataFrame(tasks)
    frame["tenth"] = (10 * frame.class_stability).astype(int)
    groups = dict([*frame.groupby(["frequency", "provider"]).tenth])
    for name in COMPOSITION:
        assert groups[name, "aws"].min() >= 9
        assert groups[name, "azure"].is_monotonic_decreasing
