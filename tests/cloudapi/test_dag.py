"""Documentation augmented generation with a model that calls what it reads."""

import math

import pytest
from reading_model import UNSURE, ReadingModel

from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.dag import ask, documented, passes
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec
from lookuplab.errors import UserError

NAMES = ("put_object", "get_object", "delete_object", "list_objects", "put_bucket_policy", "get_bucket_policy")
INDEX = ApiIndex([ApiSpec("aws", "s3", "s3", name, ()) for name in NAMES]
                 + [ApiSpec("aws", "ec2", "ec2", "run_instances", ())])


def task(name, *others, frequency="low"):
    targets = tuple(f"aws/s3.s3.{api}" for api in (name, *others))
    return Task(f"{name}#1", f"# do it: {name[::-1]}\nclient.", "", targets, "aws", "s3", "s3", frequency, 0, 0, 0)


TASKS = [task("put_object", frequency="high"), task("get_object"), task("list_objects", "get_bucket_policy")]
MEMORY = {"put_object#1": "put_object", "get_object#1": "object_get", "list_objects#1": "delete_object"}


@pytest.fixture
def model():
    return ReadingModel(MEMORY)


def asked(model, **options):
    return passes(model, TASKS, store=False, index=INDEX, **options)


def test_the_hit_pass_always_shows_an_acceptable_api_and_the_miss_pass_never(model):
    found = asked(model)
    assert found.hit.valid.all() and not found.miss.valid.any()


def test_a_target_that_was_not_found_is_the_last_of_the_hits(model):
    asked(model, k=2)  # BM25 finds the deleting and the putting of an object for the wrong call of the last task
    hits = [prompt.text for prompt in model.asked if prompt.id == "list_objects#1" and "API name" in prompt.text][0]
    assert hits.count("API name:") == 2 and hits.index("delete_object") < hits.index("list_objects")


def test_the_second_prompt_is_documentation_and_the_first_prompt_without_the_first_attempt(model):
    asked(model)
    texts = [prompt.text for prompt in model.asked if prompt.id == "get_object#1"]
    assert len(texts) == 3
    for text in texts[1:]:
        assert text.endswith(TASKS[1].prompt) and text.startswith('"""\n') and "object_get" not in text


def test_one_k_costs_one_first_one_hit_and_one_miss_answer_a_task(model):
    asked(model)
    assert len(model.asked) == 3 * len(TASKS)


def test_real_retrieval_is_a_choice_between_hit_and_miss(model):
    found = asked(model)
    assert list(found.retrieved) == [True, True, False]  # the last call is of another API


def test_frames_keep_the_order_of_the_tasks(model):
    found = asked(model)
    for frame in (found.first, found.hit, found.miss):
        assert list(frame.task) == [task.id for task in TASKS]


def test_confidence_and_existence_are_those_of_the_first_name(model):
    first = asked(model).first
    assert list(first.exists) == [True, False, True]
    assert first.minimum.tolist() == pytest.approx([math.exp(UNSURE)] * 3)


def test_a_name_of_another_client_exists_only_anywhere():
    model = ReadingModel({"put_object#1": "run_instances"})
    first = ask(model, TASKS[:1], store=False, index=INDEX)
    assert not first.exists.item() and first.exists_anywhere.item()


def test_documents_stand_before_the_prompt_in_the_order_given():
    shown = {"put_object#1": ("aws/s3.s3.list_objects", "aws/s3.s3.put_object")}
    [prompt] = [task.prompt for task in documented(TASKS[:1], shown, "name", INDEX)]
    assert prompt.index("list_objects") < prompt.index("put_object") < prompt.index("client.")


def test_an_index_without_the_target_is_one_clear_line(model):
    small = ApiIndex([spec for spec in INDEX.specs if spec.name != "get_object"])
    with pytest.raises(UserError, match="get_object"):
        passes(model, TASKS, store=False, index=small)


def test_k_0_is_one_clear_line(model):
    with pytest.raises(UserError, match="k"):
        asked(model, k=0)


def test_a_constrained_pass_allows_the_operations_of_the_prompts_client(model):
    ask(model, TASKS[:1], store=False, index=INDEX, constrained_below=1.0)
    assert set(model.asked[0].choices) == set(NAMES)
