"""Tests how the arguments of a call are parsed and bound to a signature, and how a completion is
judged.
"""

import re
from dataclasses import replace

import pytest
from doors import refused

from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter
from lookuplab.cloudapi.validity import (
    CallArguments,
    bind_error,
    judge_call,
    parse_call,
)

ANY, BODY = Parameter("kwargs", "VAR_KEYWORD"), "POSITIONAL_OR_KEYWORD"
URL = (Parameter("url", BODY, True), Parameter("metadata", BODY), ANY)
COPY = ApiSpec("azure", "blob", "BlobClient", "copy", URL, documented=("lease",))
VARIANTS = (Parameter("body", BODY, True), ANY), (Parameter("url", required=True), ANY)
OPEN = Parameter("url", "POSITIONAL_ONLY"), Parameter("args", "VAR_POSITIONAL"), ANY
OVERLOADED = ApiSpec("azure", "x", "C", "begin", OPEN, overloads=VARIANTS)
DATES = Parameter("from", required=True), Parameter("to", required=True)
EXPORT = ApiSpec("aws", "logs", "logs", "create_export_task", DATES)
INDEX = ApiIndex(
    [
        ApiSpec("aws", "s3", "s3", "get_it", (Parameter("Name", required=True),)),
        ApiSpec("aws", "s3", "s3", "get_waiter", (Parameter("name", BODY),), operation=False),
        ApiSpec("aws", "kms", "kms", "encrypt", ()),
        ApiSpec("azure", "compute", "Operations", "list_it", ()),
        ApiSpec("azure", "storage", "Operations", "show_it", ()),
    ]
)


def test_literal_splats_are_expanded_and_others_are_flagged():
    found = {
        "f(1, a=2)": CallArguments(1, ("a",)),
        "f(*(1, *[2, 3]), **{'a': 1, 'b': 2, 'a': 3})": CallArguments(3, ("a", "b")),
        "f(1, *more, a=2, **options)": CallArguments(1, ("a",), True),
        "f(**{name: 1, 'a': 2, **rest})": CallArguments(0, ("a",), True),
        "f(x for x in y)": CallArguments(1),
        "f(*'ab', *{x, y}, 3)": CallArguments(3, (), True),
        "f(**dict(a=g(), **{'b': 1}))": CallArguments(0, ("a", "b")),
        "f(**{**{'a': x}, x.y: 2, **dict(z)})": CallArguments(0, ("a",), True),
        "f(**({'a': 1} | dict(b=x)))": CallArguments(0, ("a", "b")),
    }
    assert {call: parse_call(call) for call in found} == found


def test_what_python_would_not_run_is_an_error():
    wrong = "f(a=1, a=2)|f(a=1, **{'a': 2})|f(**{1: 2})|f(a b)|f(,)|f(a=1, 2)|f(\0)|f(await g())"
    for call in [*wrong.split("|"), "f(1).a", "f(" + "(" * 300 + ")" * 300 + ")", None]:
        with pytest.raises(ValueError, match=r"\w"):
            parse_call(call)


OPEN_AND_CLOSED = [
    (COPY, "'u', lease=1", True, True),
    (COPY, "'u', retry_total=1", True, True),
    (COPY, "'u', bogus=1", True, False),
    (replace(COPY, module="azure.blob"), "'u', self=1", False, False),
    (OVERLOADED, "", True, False),
    (OVERLOADED, "{}", True, True),
    (OVERLOADED, "url=1, timeout=2", True, True),  # not the positional-only ``url``
    (OVERLOADED, "{}, url=1", True, False),
    (EXPORT, "fromTime=1, to=2", True, True),  # botocore's documentation names this alias
    (EXPORT, "**{'from': 1, 'to': 2}", True, True),
    (EXPORT, "**{'from': 1, 'fromTime': 1, 'to': 2}", False, False),
]


def test_open_binding_takes_any_keyword_and_closed_binding_only_known_ones():
    for spec, arguments, *binds in OPEN_AND_CLOSED:
        call = parse_call(f"f({arguments})")
        found = [bind_error(spec, call, closed) is None for closed in (False, True)]
        assert found == binds, (spec.name, arguments)


def test_existence_is_scoped_to_the_client_and_the_name_only_variant_is_kept():
    expected = {
        "get_it()": ("invalid_usage", True),
        "encrypt()": ("nonexistent", True),
        'get_waiter("x")': ("incorrect_existing", True),
    }
    absent = ("no_such()", "client.get_it(Name=1)", "", "\0get_it(Name=1)")
    for text, found in (expected | dict.fromkeys(absent, ("nonexistent", False))).items():
        judged = judge_call(text, ["get_it"], INDEX, "aws", "s3")
        assert (judged.category, judged.exists_anywhere) == found, text
    other = judge_call("get_waiter()", ["get_it", "x.get_all"], INDEX, "aws", "s3").reason
    # the reason names the wrong API, although the arguments are wrong, too
    assert other == "the task asks for get_all or get_it"
    told = judge_call("get_it()", ["get_it"], INDEX, "aws", "s3").reason
    # the message depends on Python's version
    assert re.fullmatch("missing a required (keyword-only )?argument: 'Name'", told)


def test_any_of_several_targets_makes_it_valid_and_strange_targets_are_flagged():
    targets = ["aws/s3.s3.get_it", "aws/s3.s3.get_waiter"]
    assert judge_call("get_waiter('x')", targets, INDEX, "aws", "s3").valid
    strange = judge_call("get_it(**x)", ["no_such"], INDEX, "aws", "s3")
    assert strange.flags == ("unknown_target", "unresolved_splat")


def test_the_service_tells_apart_classes_of_equal_name_and_an_unknown_one_is_passed_over():
    for service, valid in {"storage": 1, "azure-mgmt-storage": 1, "compute": 0}.items():
        place = INDEX, "azure", "Operations", service
        assert judge_call("show_it()", ["show_it"], *place).valid == valid
    with refused("no client 's4'"):
        judge_call("f()", ["f"], INDEX, "aws", "s4")
