"""The Azure half of the index against the installed packages."""

import importlib
import inspect
from collections import Counter
from functools import cache

import pytest

from lookuplab.cloudapi import azure
from lookuplab.cloudapi.specs import load_documentation, load_index

SHARED = {"generic_name", "shared_name"}  # flags that only the whole index can know


@cache
def _specs():
    return [spec for spec in load_index().specs if spec.provider == "azure"]


def _spec(place: str):
    return load_index().by_id[f"azure/{place}"]


def test_the_twelve_packages_give_the_known_numbers_of_methods():
    assert Counter(spec.service for spec in _specs()) == {
        "blob": 84, "callautomation": 32, "compute": 288, "computervision": 21, "cosmos": 72, "eventhub": 17,
        "formrecognizer": 48, "network": 731, "secrets": 14, "servicefabric": 248, "storage": 96, "textanalytics": 14,
    }


@pytest.mark.parametrize("service", ["blob", "callautomation", "secrets", "storage", "servicefabric"])
def test_a_fresh_reading_equals_the_index(service):
    fresh = {spec.id: spec for spec in azure.specifications(service)}
    assert fresh.keys() == {spec.id for spec in _specs() if spec.service == service}
    for spec in fresh.values():
        kept = _spec(spec.id.removeprefix("azure/"))
        assert set(spec.flags) == set(kept.flags) - SHARED
        for field in ("parameters", "overloads", "documented", "description", "module", "operation"):
            assert getattr(spec, field) == getattr(kept, field), (spec.id, field)


def test_every_client_can_be_imported_from_its_module_and_has_the_method():
    for spec in _specs():
        client = getattr(importlib.import_module(spec.module), spec.client)
        assert inspect.isroutine(getattr(client, spec.name)), spec.id


def test_operation_groups_come_from_the_version_that_the_client_resolves():
    assert _spec("compute.VirtualMachinesOperations.begin_run_command").module == (
        "azure.mgmt.compute.v2024_03_01.operations"
    )
    assert _spec("network.VirtualNetworkGatewaysOperations.begin_reset").module == "azure.mgmt.network.operations"
    assert _spec("storage.StorageAccountsOperations.list_keys").module == "azure.mgmt.storage.v2023_01_01.operations"


def test_methods_of_mixins_belong_to_their_client():
    mixed_in = {spec.client for spec in _specs() if spec.service in ("servicefabric", "computervision")}
    assert "ServiceFabricClientAPIs" in mixed_in and "ComputerVisionClient" in mixed_in
    assert not [client for client in mixed_in if "Mixin" in client]


def test_hand_picked_signatures():
    run = _spec("compute.VirtualMachinesOperations.begin_run_command")
    assert run.required == ("resource_group_name", "vm_name", "parameters")
    assert [(p.name, p.type) for p in run.parameters[:3]] == [
        ("resource_group_name", "string"), ("vm_name", "string"), ("parameters", "structure"),
    ]
    upload = _spec("blob.BlobClient.upload_blob")
    assert upload.required == ("data",)
    assert upload.parameters[-1].kind == "VAR_KEYWORD" and not upload.parameters[-1].required
    assert _spec("secrets.SecretClient.set_secret").required == ("name", "value")
    assert _spec("eventhub.EventHubConsumerClient.receive").required == ("on_event",)


def test_overloads_are_signatures_of_their_own():
    run = _spec("compute.VirtualMachinesOperations.begin_run_command")
    assert len(run.overloads) == 2 and all("content_type" in {p.name for p in o} for o in run.overloads)
    recording = _spec("callautomation.CallAutomationClient.start_recording")
    required = [[p.name for p in overload if p.required] for overload in recording.overloads]
    assert recording.required == () and required == [["server_call_id"], ["group_call_id"]]


def test_keywords_that_only_the_docstring_knows_are_kept():
    upload = _spec("blob.BlobClient.upload_blob")
    assert {"overwrite", "content_settings", "timeout", "lease", "max_concurrency"} <= set(upload.documented)
    for spec in _specs():
        assert not set(spec.documented) & {p.name for p in spec.parameters}, spec.id


def test_open_signatures_are_flagged():
    flagged = {spec.id for spec in _specs() if "open_signature" in spec.flags}
    assert flagged == {
        "azure/blob.ContainerClient.delete_blobs", "azure/callautomation.CallAutomationClient.start_recording",
    }


def test_generic_names_are_flagged():
    for place in ("compute.DisksOperations.get", "network.LoadBalancersOperations.list_all",
                  "network.LoadBalancersOperations.begin_delete"):
        assert "generic_name" in _spec(place).flags, place
    assert _spec("callautomation.CallConnectionClient.send_dtmf_tones").flags == ()


def test_descriptions_are_the_first_sentence():
    assert _spec("compute.VirtualMachinesOperations.begin_run_command").description == "Run command on the VM."
    assert _spec("cosmos.ContainerProxy.query_items").description == "Return all results matching the given `query`."
    assert _spec("eventhub.EventHubProducerClient.send_batch").description == "Sends a batch of event data."
    assert not [spec.id for spec in _specs() if not spec.description and spec.operation]


@pytest.mark.parametrize(("annotation", "word"), [
    ("str", "string"), ("Optional[str]", "string"), ("Union[str, ~azure.core.MatchConditions]", "string"),
    ("List[str]", "list"), ("Union[_models.RunCommandInput, IO]", "structure"), ("Dict[str, Any]", "map"),
    ("Union[bytes, str, Iterable[AnyStr], IO[AnyStr]]", "blob"), ("datetime.datetime", "timestamp"),
    ("~datetime.datetime or str", "timestamp"), ("int", "integer"), ("bool | None", "boolean"), ("", ""),
])
def test_annotations_become_one_word(annotation, word):
    assert azure._word(annotation) == word


def test_documentation_is_the_docstring():
    pages = azure.documentation("secrets")
    page = pages["azure/secrets.SecretClient.get_secret"]
    assert page.startswith("Get a secret.") and ":param str name:" in page
    assert load_documentation()["azure/secrets.SecretClient.get_secret"] == page
