"""The AWS half of the index against botocore itself."""

from collections import Counter
from functools import cache

import botocore.loaders
import pytest
from botocore import xform_name

from lookuplab.cloudapi import aws
from lookuplab.cloudapi.specs import Parameter, load_documentation, load_index

SAMPLE = ("kms", "cognito-sync", "glacier", "sqs", "logs", "mturk", "lexv2-runtime")  # small ones, and special cases
SHARED = {"generic_name", "shared_name"}  # flags that only the whole index can know


@cache
def _operations():
    return [spec for spec in load_index().specs if spec.provider == "aws" and spec.operation]


def _spec(service: str, name: str):
    return load_index().by_id[f"aws/{service}.{service}.{name}"]


def test_every_operation_of_every_service_is_there_but_the_two_that_boto3_removes():
    assert len(_operations()) == 15_425 - 2
    assert len({spec.service for spec in _operations()}) == 383
    assert "start_conversation" not in load_index().methods("aws", "lexv2-runtime")
    assert "chat" not in load_index().methods("aws", "qbusiness")


def test_required_members_have_the_known_distribution():
    counts = Counter(min(len(spec.required), 7) for spec in _operations())
    # The two removed operations require 1 and 5 members: 6,446 and 188 of the models become 6,445 and 187.
    assert [counts[n] for n in range(8)] == [2529, 6445, 4203, 1467, 490, 187, 72, 30]


def test_hand_picked_signatures():
    assert _spec("kms", "encrypt").required == ("KeyId", "Plaintext")
    assert _spec("kms", "encrypt").parameters[1] == Parameter("Plaintext", "KEYWORD_ONLY", True, "blob")
    assert _spec("s3", "put_object").required == ("Bucket", "Key")
    assert "Body" in _spec("s3", "put_object").optional
    assert set(_spec("autoscaling", "complete_lifecycle_action").required) == {
        "LifecycleHookName", "AutoScalingGroupName", "LifecycleActionResult",
    }
    assert {p.kind for spec in _operations() for p in spec.parameters} == {"KEYWORD_ONLY"}


@pytest.mark.parametrize("service", SAMPLE)
def test_the_index_equals_the_service_model(service):
    model = botocore.loaders.create_loader().load_service_model(service, "service-2")
    for operation in model["operations"].values():
        name = xform_name(operation["name"])
        if (service, name) == ("lexv2-runtime", "start_conversation"):
            continue
        shape = model["shapes"][operation["input"]["shape"]] if "input" in operation else {}
        spec = _spec(service, name)
        assert [p.name for p in spec.parameters] == list(shape.get("members", {})), spec.id
        assert set(spec.required) == set(shape.get("required", ())), spec.id


@pytest.mark.parametrize("service", SAMPLE)
def test_a_fresh_reading_equals_the_index(service):
    fresh = {spec.name: spec for spec in aws.specifications(service)}
    committed = load_index().methods("aws", service)
    assert fresh.keys() == committed.keys()
    for name, spec in fresh.items():
        kept = committed[name]
        for field in ("parameters", "description", "operation"):
            assert getattr(spec, field) == getattr(kept, field), (spec.id, field)
        assert set(spec.flags) == set(kept.flags) - SHARED, spec.id


def test_operations_that_are_not_sampled_are_flagged():
    flags = Counter(flag for spec in _operations() for flag in spec.flags)
    assert flags["autofilled"] == 207  # 174 idempotency tokens, 33 account ids of glacier
    assert [s.id for s in _operations() if "keyword_argument" in s.flags] == [
        "aws/cloudsearchdomain.cloudsearchdomain.search", "aws/logs.logs.create_export_task",
    ]
    assert "shared_name" in _spec("kms", "tag_resource").flags and "generic_name" in _spec("kms", "encrypt").flags
    assert _spec("iam", "add_user_to_group").flags == ()


def test_client_methods_that_are_no_operation_are_known_with_their_own_signature():
    for service in {spec.service for spec in _operations()}:
        methods = load_index().methods("aws", service)
        assert all(name in methods and not methods[name].operation for name in aws.EVERY_CLIENT), service
    assert _spec("s3", "upload_file").required == ("Filename", "Bucket", "Key")
    assert _spec("s3", "upload_file").parameters[0].kind == "POSITIONAL_OR_KEYWORD"
    assert _spec("rds", "generate_db_auth_token").required == ("DBHostname", "Port", "DBUsername")
    assert not _spec("mturk", "list_hi_ts_for_qualification_type").operation


def test_descriptions_are_at_most_five_plain_sentences():
    assert _spec("cognito-sync", "list_identity_pool_usage").description == (  # paper, Figure 15
        "Gets a list of identity pools registered with Cognito. ListIdentityPoolUsage can only be called with "
        "developer credentials. You cannot make this API call with the temporary user credentials provided by Cognito "
        "Identity."
    )
    assert sum(not spec.description for spec in _operations()) == 9
    assert not [spec.id for spec in _operations() if "</p>" in spec.description or "\n" in spec.description]


def test_full_documentation_reads_as_figure_15():
    page = aws.documentation("cognito-sync")["aws/cognito-sync.cognito-sync.list_identity_pool_usage"]
    beginning = (
        "Gets a list of identity pools registered with Cognito. ListIdentityPoolUsage can only be called with "
        "developer credentials. You cannot make this API call with the temporary user credentials provided by Cognito "
        "Identity. "
        "See also: AWS API Documentation Request Syntax response = client.list_identity_pool_usage( "
        "NextToken='string', MaxResults=123 )"
    )
    assert " ".join(page.split()).startswith(beginning)
    assert load_documentation()["aws/cognito-sync.cognito-sync.list_identity_pool_usage"] == page
