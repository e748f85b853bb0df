"""The committed index against botocore and the Azure packages, and the builder that made it."""

import importlib
import inspect
import lzma
from collections import Counter

import botocore.loaders
import pytest
from botocore import xform_name

from lookuplab.cloudapi import sdks
from lookuplab.cloudapi.specs import (
    ApiSpec,
    Parameter,
    flagged,
    load_documentation,
    load_index,
    to_json,
)
from lookuplab.errors import UserError

SAMPLE = "kms cognito-sync glacier sqs logs mturk lexv2-runtime".split()  # small and special ones
AZURE_SAMPLE = "blob callautomation secrets storage servicefabric".split()
AWS = [spec for spec in load_index().operations if spec.provider == "aws"]
AZURE = [spec for spec in load_index().specs if spec.provider == "azure"]


def _aws(service: str, name: str) -> ApiSpec:
    return load_index().by_id[f"aws/{service}.{service}.{name}"]


def _azure(place: str) -> ApiSpec:
    return load_index().by_id[f"azure/{place}"]


def test_every_operation_of_every_service_is_there_but_the_two_that_boto3_removes():
    assert len(AWS) == 15_425 - 2 and len({spec.service for spec in AWS}) == 383
    assert "start_conversation" not in load_index().methods("aws", "lexv2-runtime")
    assert "chat" not in load_index().methods("aws", "qbusiness")
    counts = Counter(min(len(spec.required), 7) for spec in AWS)
    # The removed operations require 1 and 5 members: 6,446 and 188 of the models become one less.
    assert [counts[n] for n in range(8)] == [2529, 6445, 4203, 1467, 490, 187, 72, 30]


def test_hand_picked_aws_signatures():
    assert _aws("kms", "encrypt").required == ("KeyId", "Plaintext")
    assert _aws("kms", "encrypt").parameters[1] == Parameter("Plaintext", required=1, type="blob")
    assert _aws("s3", "put_object").required == ("Bucket", "Key")
    assert "Body" in _aws("s3", "put_object").optional
    assert {p.kind for spec in AWS for p in spec.parameters} == {"KEYWORD_ONLY"}


@pytest.mark.parametrize("service", SAMPLE)
def test_the_index_equals_the_service_model(service):
    model = botocore.loaders.create_loader().load_service_model(service, "service-2")
    for operation in model["operations"].values():
        name = xform_name(operation["name"])
        if name == "start_conversation":
            continue
        shape = model["shapes"][operation["input"]["shape"]] if "input" in operation else {}
        spec = _aws(service, name)
        assert [p.name for p in spec.parameters] == list(shape.get("members", {})), spec.id
        assert set(spec.required) == set(shape.get("required", ())), spec.id


@pytest.mark.parametrize(
    "place", [*(("aws", name) for name in SAMPLE), *(("azure", name) for name in AZURE_SAMPLE)]
)
def test_a_fresh_reading_equals_the_index(place):
    """But for the flags that only the whole index knows."""
    found, kept = sdks.part(place), load_index().by_id
    for spec, page in found:
        flags = set(kept[spec.id].flags) - {"generic_name", "shared_name"}
        assert to_json(spec) | {"flags": flags} == to_json(kept[spec.id]) | {"flags": {*spec.flags}}
        assert page == load_documentation().get(spec.id, "")
    assert len(found) == sum((one.provider, one.service) == place for one in kept.values())


def test_operations_that_are_not_sampled_are_flagged():
    flags = Counter(flag for spec in AWS for flag in spec.flags)
    assert flags["autofilled"] == 207  # 174 idempotency tokens, 33 account ids of glacier
    keywords = [spec.name for spec in AWS if "keyword_argument" in spec.flags]
    assert keywords == ["search", "create_export_task"]
    assert "shared_name" in _aws("kms", "tag_resource").flags
    assert "generic_name" in _aws("kms", "encrypt").flags
    assert _aws("iam", "add_user_to_group").flags == ()
    assert {spec.name for spec in AZURE if "open_signature" in spec.flags} == {
        "delete_blobs",
        "start_recording",
    }


def test_client_methods_that_are_no_operation_are_known_with_their_own_signature():
    for service in {spec.service for spec in AWS}:
        methods = load_index().methods("aws", service)
        assert not any(methods[name].operation for name in sdks.EVERY_CLIENT), service
    assert _aws("s3", "upload_file").required == ("Filename", "Bucket", "Key")
    assert _aws("rds", "generate_db_auth_token").required == ("DBHostname", "Port", "DBUsername")
    assert not _aws("mturk", "list_hi_ts_for_qualification_type").operation


def test_descriptions_and_documentation_are_those_of_figure_15():
    """At most five plain sentences, and at most 5,000 characters."""
    said = (
        "Gets a list of identity pools registered with Cognito. ListIdentityPoolUsage can only be "
        "called with developer credentials. You cannot make this API call with the temporary user "
        "credentials provided by Cognito Identity."
    )
    usage, pages = _aws("cognito-sync", "list_identity_pool_usage"), load_documentation()
    assert usage.description == said
    assert " ".join(pages[usage.id].split()).startswith(
        f"{said} See also: AWS API Documentation Request Syntax "
        "response = client.list_identity_pool_usage( NextToken='string', MaxResults=123 )"
    )
    assert sum(not spec.description for spec in AWS) == 9
    assert not [s.id for s in AWS if "</p>" in s.description or "\n" in s.description]
    assert all(pages[spec.id] for spec in load_index().operations)
    assert max(map(len, pages.values())) == 5_000


def test_the_twelve_azure_packages_give_the_known_numbers_of_methods():
    found = Counter(spec.service for spec in AZURE)
    assert " ".join(f"{service}:{number}" for service, number in sorted(found.items())) == (
        "blob:84 callautomation:32 compute:288 computervision:21 cosmos:72 eventhub:17 "
        "formrecognizer:48 network:731 secrets:14 servicefabric:248 storage:96 textanalytics:14"
    )
    for spec in AZURE:
        client = getattr(importlib.import_module(spec.module), spec.client)
        assert inspect.isroutine(getattr(client, spec.name)), spec.id
        assert "Mixin" not in spec.client and (spec.description or not spec.operation)


def test_hand_picked_azure_signatures():
    run = _azure("compute.VirtualMachinesOperations.begin_run_command")
    assert run.description == "Run command on the VM."
    # The version that the client resolves.
    assert run.module == "azure.mgmt.compute.v2024_03_01.operations"
    required = [(p.name, p.type) for p in run.parameters if p.required]
    names, kinds = (
        ("resource_group_name", "vm_name", "parameters"),
        ("string", "string", "structure"),
    )
    assert required == list(zip(names, kinds, strict=True))
    upload = _azure("blob.BlobClient.upload_blob")
    assert upload.required == ("data",) and upload.parameters[-1].kind == "VAR_KEYWORD"
    assert {"overwrite", "content_settings", "timeout"} <= set(upload.documented)
    assert _azure("secrets.SecretClient.set_secret").required == ("name", "value")
    recording = _azure("callautomation.CallAutomationClient.start_recording")
    overloads = [[p.name for p in overload if p.required] for overload in recording.overloads]
    assert recording.required == () and overloads == [["server_call_id"], ["group_call_id"]]


def test_another_version_of_an_sdk_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.metadata.distributions", list)
    with pytest.raises(UserError, match="boto3==1.34.108"):
        sdks.build(tmp_path)


def test_flags_say_which_names_do_not_tell_the_api():
    places = "a.put_thing b.put_thing a.begin_delete a.put_other".split()
    places = [place.split(".") for place in places] + [(client, "list_tags") for client in "abcde"]
    found = flagged([ApiSpec("aws", client, client, name, ()) for client, name in places])
    flags = ["+".join(spec.flags) for spec in found]
    shared = ["shared_name", "shared_name", "generic_name", ""]
    assert flags == shared + ["generic_name+shared_name"] * 5


def test_methods_of_one_service_are_told_apart_where_class_names_are_equal():
    compute = load_index().methods("azure", "Operations", "compute")
    assert compute["list"].service == "compute"


def test_what_is_no_index_is_refused_in_one_line(tmp_path):
    place = tmp_path / "index.jsonl.xz"
    for content in (b"text", lzma.compress(b"{}\n" * 99)[:60]):
        place.write_bytes(content)
        with pytest.raises(UserError, match="is no API index"):
            load_index(place)
    with pytest.raises(UserError, match="is no API index"):
        load_index(tmp_path)
