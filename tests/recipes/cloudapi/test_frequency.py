"""Tests how often APIs occur: by which name, in which files, and in which kinds of sources."""

import gzip
import json
import os

import pandas
import pytest
from doors import call, refused

from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, load_index
from lookuplab.cloudapi.tasks import load_tasks
from recipes.cloudapi.frequency import count, read_frequencies, source_files

PLACES = """
    aws s3 s3 put_object
    aws media media put_object
    aws kms kms encrypt
    azure cosmos ContainerProxy create_item
"""
INDEX = ApiIndex(ApiSpec(*line.split(), ()) for line in PLACES.strip().splitlines())


def test_calls_and_definitions_count_by_name_but_mentions_do_not():
    text = (
        'def put_object(x): ...\nput_object(1)\ns.put_object (2)\nf"{s.put_object()}"\n'
        '# put_object(3)\n"put_object(4)"\nx = s.put_object\n'
    )
    frame, _ = count([("boto.py", text)], INDEX)
    assert frame.count_name.to_dict() == {
        "aws/s3.s3.put_object": 4,
        "aws/media.media.put_object": 4,
        "aws/kms.kms.encrypt": 0,
        "azure/cosmos.ContainerProxy.create_item": 0,
    }


def test_copies_and_sdk_sources_are_left_out_and_python_2_is_counted_by_regular_expression():
    files = {
        "a/boto.py": "f.encrypt()",
        "b/boto.py": "f.encrypt()",
        "b.py": "g.encrypt()",
        "lib/site-packages/botocore/client.py": "h.encrypt()",
        "boto2.py": 'print "x"\nc.encrypt()\n',
    }
    frame, fates = count(files.items(), INDEX)
    left_out = {"copy": 1, "other": 1, "SDK source": 1}
    assert fates == {"read": 5, "aws": 2, "unparsed": 1} | left_out
    assert frame.count_name["aws/kms.kms.encrypt"] == 2


@pytest.mark.parametrize(
    ("path", "text", "fates"),
    [
        ("x.py", "import os, boto3 as b", {"aws": 1}),
        ("my_AWS/x.py", "", {"aws": 1}),
        ("x.py", "import boto3_wrapper", {"other": 1}),
        ("x.py", "from azure.cosmos import X\nimport boto3", {"aws": 1, "azure": 1}),
    ],
)
def test_source_specific_files_import_the_sdk_or_name_it_in_their_path(path, text, fates):
    assert count([(path, text)], INDEX)[1] == fates | {"read": 1}


def test_sdk_sources_are_known_by_their_path():
    sdks = "boto3/session.py v/botocore/auth.py azure/mgmt/compute/models.py"
    sdks += " azure-storage-blob/azure/storage/blob/_models.py azure-sdk-for-python/sdk/x.py"
    users = (
        "examples/boto3/upload.py azure/upload.py azure-samples/x.py "
        "azure/cosmos/agent_memory/x.py src/azure-cli/azure/cli/command_modules/vm/custom.py"
    )
    files = {path: f"import boto3\n# {path}" for path in f"{sdks} {users}".split()}
    assert count(files.items(), INDEX)[1]["SDK source"] == len(sdks.split())


# Only the repository's name becomes part of the path. The owner does not, so "aws-samples" does not
# make the file one of AWS's own.
ROWS = [
    {"path": "boto/a", "content": "f.encrypt()"},
    {"content": "\ufeffg()", "repo_name": "aws-samples/b"},
    {"path": "c", "content": None},
]


@pytest.mark.parametrize("kind", ["jsonl.gz", "parquet"])
def test_rows_of_a_file_are_read_and_those_without_text_reported(tmp_path, capfd, kind):
    place = tmp_path / f"rows.{kind}"
    lines = "\n".join(map(json.dumps, ROWS)).encode()
    place.write_bytes(gzip.compress(lines))
    if kind == "parquet":
        pandas.DataFrame(ROWS).to_parquet(place)
        place = tmp_path
    assert [*source_files(str(place))] == [("boto/a", "f.encrypt()"), ("b", "g()")]
    assert "rows without text, left out: 1" in capfd.readouterr().err


def test_the_scripts_of_a_folder_are_read(tmp_path, monkeypatch):
    (tmp_path / "c.py").write_text("\ufeffg()", encoding="utf-8")
    (tmp_path / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert [*source_files(".")] == [("c.py", "g()")]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("lost", "no file or folder lost; a data set on the hub is written owner/name"),
        ("code/lost.jsonl.gz", "no file or folder code/lost.jsonl.gz"),
        ("bigcode/the-stack-v2-dedup", "holds no text, only ids: fetch the files from"),
    ],
)
def test_a_missing_file_and_the_stack_v2_are_refused_without_a_look_at_the_hub(source, said):
    with refused(said):
        list(source_files(source))


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda _: load_tasks(os.devnull), "holds no CloudAPIBench tasks"),
        (load_index, "is not an API index"),
        (load_tasks, "holds no CloudAPIBench tasks"),
        (read_frequencies, "make it with `lookuplab data frequencies`"),
        (
            lambda file: [*source_files(str(file))],
            "cannot read|has no text in a field named content, text or",
        ),
    ],
)
def test_a_file_that_holds_something_else_is_refused_in_one_line(tmp_path, read, words):
    for number, text in enumerate(("text\n", '{"id": 1}\n')):
        (file := tmp_path / f"{number}.jsonl").write_text(text)
        with refused(words):
            read(file)
    file.write_text("api,count_name,class\na,1,often\n")
    with refused("'often' is not a frequency class"):
        read_frequencies(file)


def test_the_command_writes_a_row_for_every_operation_and_a_report(tmp_path):
    (tmp_path / "boto.py").write_text('c = boto3.client("kms")\nc.encrypt()\n')
    out = tmp_path / "out.csv"
    result = call("data", "frequencies", tmp_path, "-o", out)
    assert "'read': 1" in result.stdout and "class: {'low': 17054}" in result.stdout
    assert out.read_text().startswith("api,count_name\n")
    found = read_frequencies(out).count_name
    assert found["aws/kms.kms.encrypt"] == 1 == found.sum()
