"""The committed index against botocore and the Azure packages, and the builder that made it."""

import importlib
import inspect
import lzma
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import botocore.loaders
import pytest
from botocore import xform_name

from lookuplab.cloudapi import sdks, specs
from lookuplab.cloudapi.specs import (
    ApiSpec,
    Parameter,
    flagged,
    from_json,
    load_documentation,
    load_index,
    to_json,
)
from lookuplab.errors import UserError

SAMPLE = "kms cognito-sync glacier sqs logs mturk lexv2-runtime".split()  # small and special ones
AZURE_SAMPLE = ["blob", "callautomation", "secrets", "storage", "servicefabric"]


@cache
def _specs(provider: str) -> list[ApiSpec]:
    return [spec for spec in load_index().specs if spec.provider == provider]


@cache
def _operations() -> list[ApiSpec]:
    return [spec for spec in _specs("aws") if spec.operation]


def _aws(service: str, name: str) -> ApiSpec:
    return load_index().by_id[f"aws/{service}.{service}.{name}"]


def _azure(place: str) -> ApiSpec:
    return load_index().by_id[f"azure/{place}"]


def test_every_operation_of_every_service_is_there_but_the_two_that_boto3_removes():
    assert len(_operations()) == 15_425 - 2
    assert len({spec.service for spec in _operations()}) == 383
    assert "start_conversation" not in load_index().methods("aws", "lexv2-runtime")
    assert "chat" not in load_index().methods("aws", "qbusiness")


def test_required_members_have_the_known_distribution():
    counts = Counter(min(len(spec.required), 7) for spec in _operations())
    # The removed operations require 1 and 5 members: 6,446 and 188 of the models become one less.
    assert [counts[n] for n in range(8)] == [2529, 6445, 4203, 1467, 490, 187, 72, 30]


def test_hand_picked_aws_signatures():
    assert _aws("kms", "encrypt").required == ("KeyId", "Plaintext")
    assert _aws("kms", "encrypt").parameters[1] == Parameter("Plaintext", required=1, type="blob")
    assert _aws("s3", "put_object").required == ("Bucket", "Key")
    assert "Body" in _aws("s3", "put_object").optional
    assert {p.kind for spec in _operations() for p in spec.parameters} == {"KEYWORD_ONLY"}


@pytest.mark.parametrize("service", SAMPLE)
def test_the_index_equals_the_service_model(service):
    model = botocore.loaders.create_loader().load_service_model(service, "service-2")
    for operation in model["operations"].values():
        name = xform_name(operation["name"])
        if (service, name) == ("lexv2-runtime", "start_conversation"):
            continue
        shape = model["shapes"][operation["input"]["shape"]] if "input" in operation else {}
        spec = _aws(service, name)
        assert [p.name for p in spec.parameters] == list(shape.get("members", {})), spec.id
        assert set(spec.required) == set(shape.get("required", ())), spec.id


@pytest.mark.parametrize(
    ("provider", "service"),
    [*(("aws", name) for name in SAMPLE), *(("azure", name) for name in AZURE_SAMPLE)],
)
def test_a_fresh_reading_equals_the_index(provider, service):
    found = sdks.part((provider, service))
    kept = {spec.id: to_json(spec) for spec in _specs(provider) if spec.service == service}
    for row in kept.values():
        only_the_whole_index_knows = {"generic_name", "shared_name"}
        row["flags"] = tuple(f for f in row.get("flags", ()) if f not in only_the_whole_index_knows)
    assert {spec.id: {"flags": (), **to_json(spec)} for spec, _ in found} == kept
    documented = load_documentation()
    assert {spec.id: page for spec, page in found if page} == {
        api: documented[api] for api in kept if api in documented
    }


def test_operations_that_are_not_sampled_are_flagged():
    flags = Counter(flag for spec in _operations() for flag in spec.flags)
    assert flags["autofilled"] == 207  # 174 idempotency tokens, 33 account ids of glacier
    assert [s.id for s in _operations() if "keyword_argument" in s.flags] == [
        "aws/cloudsearchdomain.cloudsearchdomain.search",
        "aws/logs.logs.create_export_task",
    ]
    assert "shared_name" in _aws("kms", "tag_resource").flags
    assert "generic_name" in _aws("kms", "encrypt").flags
    assert _aws("iam", "add_user_to_group").flags == ()


def test_client_methods_that_are_no_operation_are_known_with_their_own_signature():
    for service in {spec.service for spec in _operations()}:
        methods = load_index().methods("aws", service)
        assert not any(methods[name].operation for name in sdks.EVERY_CLIENT), service
    assert _aws("s3", "upload_file").required == ("Filename", "Bucket", "Key")
    assert _aws("rds", "generate_db_auth_token").required == ("DBHostname", "Port", "DBUsername")
    assert not _aws("mturk", "list_hi_ts_for_qualification_type").operation


def test_descriptions_are_at_most_five_plain_sentences():
    assert _aws("cognito-sync", "list_identity_pool_usage").description == (  # paper, Figure 15
        "Gets a list of identity pools registered with Cognito. ListIdentityPoolUsage can only be "
        "called with developer credentials. You cannot make this API call with the temporary user "
        "credentials provided by Cognito Identity."
    )
    assert sum(not spec.description for spec in _operations()) == 9
    assert not [s.id for s in _operations() if "</p>" in s.description or "\n" in s.description]


def test_full_documentation_reads_as_figure_15():
    page = load_documentation()["aws/cognito-sync.cognito-sync.list_identity_pool_usage"]
    assert " ".join(page.split()).startswith(
        "Gets a list of identity pools registered with Cognito. ListIdentityPoolUsage can only be "
        "called with developer credentials. You cannot make this API call with the temporary user "
        "credentials provided by Cognito Identity. See also: AWS API Documentation Request Syntax "
        "response = client.list_identity_pool_usage( NextToken='string', MaxResults=123 )"
    )


def test_the_twelve_azure_packages_give_the_known_numbers_of_methods():
    found = Counter(spec.service for spec in _specs("azure"))
    assert " ".join(f"{service}:{number}" for service, number in sorted(found.items())) == (
        "blob:84 callautomation:32 compute:288 computervision:21 cosmos:72 eventhub:17 "
        "formrecognizer:48 network:731 secrets:14 servicefabric:248 storage:96 textanalytics:14"
    )


def test_every_azure_client_can_be_imported_from_its_module_and_has_the_method():
    for spec in _specs("azure"):
        client = getattr(importlib.import_module(spec.module), spec.client)
        assert inspect.isroutine(getattr(client, spec.name)), spec.id
        assert "Mixin" not in spec.client


def test_operation_groups_come_from_the_version_that_the_client_resolves():
    run = _azure("compute.VirtualMachinesOperations.begin_run_command")
    assert run.module == "azure.mgmt.compute.v2024_03_01.operations"
    keys = _azure("storage.StorageAccountsOperations.list_keys")
    assert keys.module == "azure.mgmt.storage.v2023_01_01.operations"


def test_hand_picked_azure_signatures():
    run = _azure("compute.VirtualMachinesOperations.begin_run_command")
    assert [(p.name, p.type) for p in run.parameters if p.required] == [
        ("resource_group_name", "string"),
        ("vm_name", "string"),
        ("parameters", "structure"),
    ]
    upload = _azure("blob.BlobClient.upload_blob")
    assert upload.required == ("data",) and upload.parameters[-1].kind == "VAR_KEYWORD"
    assert {"overwrite", "content_settings", "timeout"} <= set(upload.documented)
    assert _azure("secrets.SecretClient.set_secret").required == ("name", "value")


def test_overloads_are_signatures_of_their_own():
    recording = _azure("callautomation.CallAutomationClient.start_recording")
    required = [[p.name for p in overload if p.required] for overload in recording.overloads]
    assert recording.required == () and required == [["server_call_id"], ["group_call_id"]]


def test_open_signatures_are_flagged():
    assert {spec.id for spec in _specs("azure") if "open_signature" in spec.flags} == {
        "azure/blob.ContainerClient.delete_blobs",
        "azure/callautomation.CallAutomationClient.start_recording",
    }


def test_azure_descriptions_are_the_first_sentence():
    run = _azure("compute.VirtualMachinesOperations.begin_run_command")
    assert run.description == "Run command on the VM."
    assert not [spec.id for spec in _specs("azure") if spec.operation and not spec.description]


@pytest.mark.parametrize(
    ("annotation", "word"),
    [
        ("Optional[str]", "string"),
        ("Union[str, ~azure.core.MatchConditions]", "string"),
        ("List[str]", "list"),
        ("Union[_models.RunCommandInput, IO]", "structure"),
        ("Dict[str, Any]", "map"),
        ("Union[bytes, str, Iterable[AnyStr], IO[AnyStr]]", "blob"),
        ("~datetime.datetime or str", "timestamp"),
        ("bool | None", "boolean"),
        ("", ""),
    ],
)
def test_annotations_become_one_word(annotation, word):
    assert specs.type_word(annotation) == word


def test_every_specification_of_the_index_survives_json():
    for spec in load_index().specs:
        assert from_json(to_json(spec)) == spec, spec.id


def test_the_data_card_states_the_numbers_of_the_index():
    card = (specs.INDEX.parent / "README.md").read_text("utf-8")
    found = load_index().specs
    flags = Counter(flag for spec in found if spec.operation for flag in spec.flags)
    assert f"| `index.jsonl.xz` | {len(found):,} |" in card
    assert f"| `documentation.jsonl.xz` | {len(load_documentation()):,} |" in card
    for flag, count in flags.items():
        assert f"| `{flag}` | {count:,} |" in card, flag


def test_every_api_has_documentation_of_at_most_5000_characters():
    pages = load_documentation()
    assert not [s.id for s in load_index().specs if s.operation and not pages.get(s.id)]
    assert max(map(len, pages.values())) == 5_000
    assert pages.keys() <= load_index().by_id.keys()


def test_two_builds_give_the_same_bytes(tmp_path):
    services = [("aws", "account"), ("azure", "secrets"), ("aws", "cognito-sync")]
    described = [api for place in services for api in sdks.part(place)]
    specs.write_index(tmp_path / "one folder", described)
    specs.write_index(tmp_path / "two", described[::-1])
    for name in (specs.INDEX.name, specs.DOCUMENTATION.name):
        assert (tmp_path / "one folder" / name).read_bytes() == (
            tmp_path / "two" / name
        ).read_bytes()
    found = load_index(tmp_path / "two" / specs.INDEX.name).specs
    assert {spec.service for spec in found} == {"account", "cognito-sync", "secrets"}


def test_another_version_of_an_sdk_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.metadata.distributions", list)
    with pytest.raises(UserError, match="boto3==1.34.108"):
        sdks.build(tmp_path)


def test_reading_the_index_needs_no_sdk():
    code = (
        "import sys; from lookuplab.cloudapi import sdks, specs; specs.load_index(); "
        "sys.exit(any(m.split('.')[0] in ('boto3', 'botocore', 'azure') for m in sys.modules))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(specs.__file__).parents[2])}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_flags_say_which_names_do_not_tell_the_api():
    places = [("a", "put_thing"), ("b", "put_thing"), ("a", "begin_delete"), ("a", "put_other")]
    places += [(client, "list_tags") for client in "abcde"]
    found = flagged([ApiSpec("aws", client, client, name, ()) for client, name in places])
    assert [spec.flags for spec in found[1:5]] == [
        ("shared_name",),
        ("generic_name",),
        (),
        ("generic_name", "shared_name"),
    ]


def test_methods_of_one_service_are_told_apart_where_class_names_are_equal():
    compute = load_index().methods("azure", "Operations", "compute")
    assert compute["list"].service == "compute"
    with pytest.raises(UserError, match="no client 'NoOperations'"):
        load_index().methods("azure", "NoOperations", "blob")


@pytest.mark.parametrize("content", [b"text", lzma.compress(b"{}\n" * 99)[:60], None])
def test_what_is_no_index_is_refused_in_one_line(content, tmp_path):
    if content:
        (tmp_path / "index.jsonl.xz").write_bytes(content)
    with pytest.raises(UserError, match="is no API index"):
        load_index(tmp_path / "index.jsonl.xz")
