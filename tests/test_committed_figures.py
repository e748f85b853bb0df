"""Tests that everything committed under figures/mini comes from clean commits, one for each paper,
and that every number says where it comes from.
"""

import json
import shutil

import pytest
import quoted
from doors import call

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.results import verify


@pytest.fixture(scope="module")
def figures():
    """Return the figures as git has them, because the working tree may contain figures of a user's
    own run.
    """
    try:
        return verify.committed_files("mini")
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def records(figures):
    return {
        file: json.loads(content) for file, content in figures.items() if file.endswith(".json")
    }


def test_every_artifact_has_its_provenance(figures, records):
    numbers = [file.replace(".csv", ".json") for file in figures if file.endswith(".csv")]
    assert numbers and set(numbers) == records.keys()


def test_no_sentence_quotes_a_number_that_does_not_exist(figures):
    told = {file: content for file, content in figures.items() if file.endswith(".txt")}
    assert told and not [file for file, content in told.items() if b"not measured" in content]


def test_all_artifacts_of_a_paper_were_made_by_one_commit_without_other_changes(records):
    made = {file.split("/")[0]: record["git"] for file, record in records.items()}
    for file, record in records.items():
        assert record["git"] == made[file.split("/")[0]] and record["git"]["dirty"] is False, file


@pytest.mark.parametrize(
    "artifact", ["apibench", "fig7a_retriever_precision", "table1_base_models"]
)
def test_a_picture_and_its_sentence_are_what_the_csv_gives(artifact, tmp_path, monkeypatch):
    """The cells tagged ``draw`` make picture and sentence without a model. `make reproduce`
    compares the pictures and sentences of all notebooks.
    """
    for profile in ("mini", "published"):
        shutil.copytree(paths.FIGURES / profile, tmp_path / profile)
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob(f"{artifact}.[spt][vnx][gt]")}
    for file in before:
        file.unlink()
    assert call("draw", artifact).exit_code == 0
    assert len(before) == 3
    assert [file.name for file in before if file.read_bytes() != before[file]] == []


@pytest.mark.usefixtures("figures")  # skip the test if git has no figures
@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("CLAIMS.md", "claims --markdown"),
        ("RESULTS.md", "results"),
        ("RESULTS-gemma.md", "results --profile gemma"),
        ("RESULTS-published.md", "results --profile published"),
    ],
)
def test_the_pages_say_what_the_figures_say(tmp_path, monkeypatch, page, command):
    for name, content in verify.committed_files("").items():  # the figures of all profiles
        file = tmp_path / "figures" / name
        paths.make_folder(file.parent)
        file.write_bytes(content)
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    told = call(*command.split()).output
    assert told == (paths.ROOT / page).read_text("utf-8"), f"lookuplab {command} > {page}"


@pytest.mark.usefixtures("figures")
def test_every_number_with_an_interval_in_prose_stands_in_a_committed_table():
    assert quoted.unknown() == []
