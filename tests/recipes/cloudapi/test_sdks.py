"""The committed index against botocore and the Azure packages, and the builder that made it."""

import importlib
import inspect
from collections import Counter

import botocore.loaders
import pytest
from botocore import xform_name

from lookuplab.cloudapi.specs import ApiSpec, load_documentation, load_index
from recipes.cloudapi import sdks
from recipes.cloudapi.reading import flagged, to_json

SAMPLE = "kms cognito-sync glacier sqs logs mturk lexv2-runtime".split()  # small and special ones
AZURE_SAMPLE = "blob callautomation secrets storage servicefabric".split()
WORDS = {"long": "integer", "double": "float"}
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


@pytest.mark.parametrize("service", SAMPLE)
def test_the_index_equals_the_service_model(service):
    model = botocore.loaders.create_loader().load_service_model(service, "service-2")
    shapes = model["shapes"]
    for operation in model["operations"].values():
        if operation["name"] == "StartConversation":
            continue
        spec = _aws(service, xform_name(operation["name"]))
        shape = shapes[operation["input"]["shape"]] if "input" in operation else {}
        members = shape.get("members", {})
        types = {name: shapes[one["shape"]]["type"] for name, one in members.items()}
        said = {p.name: p.type for p in spec.parameters}
        assert said == {name: WORDS.get(word, word) for name, word in types.items()}, spec.id
        assert set(spec.required) == set(shape.get("required", ())), spec.id
        assert {p.kind for p in spec.parameters} <= {"KEYWORD_ONLY"}


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
    usage, pages = _aws("cognito-sync", "list_identity_pool_usage"), load_documentation()
    assert usage.description == (
        "Gets a list of identity pools registered with Cognito. ListIdentityPoolUsage can only be "
        "called with developer credentials. You cannot make this API call with the temporary user "
        "credentials provided by Cognito Identity."
    )
    assert " ".join(pages[usage.id].split()).startswith(
        f"{usage.description} See also: AWS API Documentation Request Syntax "
        "response = client.list_identity_pool_usage( NextToken='string', MaxResults=123 )"
    )
    assert sum(not spec.description for spec in AWS) == 9
    assert not [s.id for s in AWS if "</p>" in s.description or "\n" in s.description]
    assert all(pages[spec.id] for spec in load_index().operations)
    assert max(map(len, pages.values())) == 5_000


def test_the_twelve_azure_packages_give_the_known_numbers_of_methods():
    found = Counter(spec.service for spec in AZURE)
    assert found.keys() == sdks.AZURE.keys() and found.total() == 1_665
    for spec in AZURE:
        client = getattr(importlib.import_module(spec.module), spec.client)
        assert inspect.isroutine(getattr(client, spec.name)), spec.id
        assert "Mixin" not in spec.client and (spec.description or not spec.operation)


def test_hand_picked_azure_signatures():
    run = _azure("compute.VirtualMachinesOperations.begin_run_command")
    # The version that the client resolves.
    assert run.module == "azure.mgmt.compute.v2024_03_01.operations"
    assert run.required == ("resource_group_name", "vm_name", "parameters")
    assert [p.type for p in run.parameters if p.required] == ["string", "string", "structure"]
    upload = _azure("blob.BlobClient.upload_blob")
    assert upload.required == ("data",) and upload.parameters[-1].kind == "VAR_KEYWORD"
    assert {"overwrite", "content_settings", "timeout"} <= set(upload.documented)
    recording = _azure("callautomation.CallAutomationClient.start_recording")
    overloads = [[p.name for p in overload if p.required] for overload in recording.overloads]
    assert recording.required == () and overloads == [["server_call_id"], ["group_call_id"]]


def test_flags_say_which_names_do_not_tell_the_api():
    places = "a.put_thing b.put_thing a.begin_delete a.put_other"
    places += "".join(f" {client}.list_tags" for client in "abcde")
    apis = (place.split(".") for place in places.split())
    found = flagged([ApiSpec("aws", client, client, name, ()) for client, name in apis])
    shared = ["shared_name", "shared_name", "generic_name", ""]
    assert ["+".join(spec.flags) for spec in found] == shared + ["generic_name+shared_name"] * 5
