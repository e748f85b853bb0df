"""Completions and tasks become one table of judgements; what judging an odd completion gives."""

import pytest

from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter
from lookuplab.cloudapi.validity import judge, validity_table
from lookuplab.errors import UserError
from lookuplab.models.types import Completion

NAME = Parameter("Name", required=True)
INDEX = ApiIndex([
    ApiSpec("aws", "s3", "s3", "get_it", (NAME,)), ApiSpec("aws", "s3", "s3", "get_it_v2", ()),
    ApiSpec("aws", "s3", "s3", "get_waiter", (Parameter("name", "POSITIONAL_OR_KEYWORD", True),), operation=False),
    ApiSpec("aws", "kms", "kms", "encrypt", ()),
    ApiSpec("azure", "compute", "Operations", "list_it", ()), ApiSpec("azure", "storage", "Operations", "show_it", ()),
])


def task(name, *targets):
    return Task(name, "client.", "", targets, "aws", "s3", "s3", "low", 0, 0, 1)


def completion(name, text, sample=0):
    return Completion(name, sample, text, (text,), (0,), None, "stop", 1)


def test_rows_follow_the_tasks_not_the_completions():
    tasks = [task("b", "aws/s3.s3.get_it", "aws/s3.s3.get_it_v2"), task("a", "aws/s3.s3.get_it")]
    done = [completion("a", "encrypt()"), completion("b", "get_it_v2()\n", 1), completion("b", "get_it(Na", 0)]
    frame = validity_table(done, tasks, INDEX)
    assert list(zip(frame.task, frame["sample"], frame.category, strict=True)) == [
        ("b", 0, "invalid_usage"), ("b", 1, "valid"), ("a", 0, "nonexistent")]
    assert list(frame.api) == ["aws/s3.s3.get_it"] * 3 and list(frame.call)[1] == "get_it_v2()"
    assert list(frame.frequency) == ["low"] * 3 and list(frame.valid) == [False, True, False]


def test_a_completion_of_no_task_is_an_error_and_no_completion_gives_an_empty_table():
    with pytest.raises(KeyError):
        validity_table([completion("z", "")], [], INDEX)
    assert list(validity_table([], [], INDEX).columns)[:3] == ["task", "sample", "api"]


@pytest.mark.parametrize(("text", "category", "anywhere"), [
    ('get_it(Name="x")', "valid", True), ("get_it()", "invalid_usage", True), ("encrypt()", "nonexistent", True),
    ('get_waiter("x")', "incorrect_existing", True), ("no_such()", "nonexistent", False),
    ("client.get_it(Name=1)", "nonexistent", False),
    ("get_waiter", "incorrect_existing", True), ("", "nonexistent", False), ("\0get_it(Name=1)", "nonexistent", False),
])
def test_existence_is_scoped_to_the_client_and_the_name_only_variant_is_kept(text, category, anywhere):
    found = judge(text, "get_it", INDEX, "aws", "s3")
    assert (found.category, found.exists_anywhere) == (category, anywhere)


def test_the_service_tells_apart_classes_of_equal_name():
    assert judge("show_it()", "show_it", INDEX, "azure", "Operations", "storage").valid
    assert judge("show_it()", "list_it", INDEX, "azure", "Operations", "compute").category == "nonexistent"


def test_a_service_that_the_index_does_not_know_is_passed_over():
    assert judge("show_it()", "show_it", INDEX, "azure", "Operations", "azure-mgmt-storage").valid


def test_an_unknown_client_is_a_user_error():
    with pytest.raises(UserError, match="no client 's4'"):
        judge("f()", "f", INDEX, "aws", "s4")
