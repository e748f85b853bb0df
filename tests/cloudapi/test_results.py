"""From judged completions to table rows, on calls that can be counted by hand."""

import math

import pytest

from lookuplab.cloudapi.benchmark import Task
from lookuplab.cloudapi.results import failure_modes, invoke, judged, name_perplexity, valid_rates
from lookuplab.cloudapi.specs import ApiIndex, ApiSpec, Parameter
from lookuplab.models.types import Completion

GET, DROP, LIST = "aws/s3.s3.get_it", "aws/s3.s3.drop_it", "azure/blob.BlobClient.list_it"
INDEX = ApiIndex([
    ApiSpec("aws", "s3", "s3", "get_it", (Parameter("Name", required=True),)),
    ApiSpec("aws", "s3", "s3", "drop_it", ()),
    ApiSpec("azure", "blob", "BlobClient", "list_it", (Parameter("kwargs", "VAR_KEYWORD"),)),
])
CALLS = {  # task -> class, API asked for, completion
    "h1": ("high", GET, "get_it(Name=1)"), "h2": ("high", GET, "get_it()"), "h3": ("high", DROP, "drop_it()"),
    "m1": ("medium", LIST, "list_it(undocumented=1)"),
    "l1": ("low", GET, "invented()"), "l2": ("low", GET, "drop_it()"),
    "l3": ("low", DROP, "drop_it(Name=1)"), "l4": ("low", DROP, "drop_it()"),
}


def task(name, frequency, api):
    provider, service, client = api.replace(".", "/").split("/")[:3]
    return Task(name, f"# {name}\nclient.", "", (api,), provider, service, client, frequency, 0, 0, 0)


def answer(name, text, logprobs=(0.0,)):
    return Completion(name, 0, text, tuple(text[:len(logprobs)]), tuple(range(len(logprobs))), logprobs, "stop", 1)


TASKS = [task(name, frequency, api) for name, (frequency, api, _) in CALLS.items()]


@pytest.fixture(scope="module")
def table():
    return judged("toy", [answer(name, text) for name, (_, _, text) in CALLS.items()], TASKS, INDEX)


def found(rows):
    return {(row["condition"], row["metric"]): row for row in rows}


def test_valid_rates_are_counted_by_class_and_over_all_tasks(table):
    rates = found(valid_rates(table))
    values = {condition: (row["value"], row["n"]) for (condition, metric), row in rates.items() if metric == "valid_percent"}
    assert values == {"high": (pytest.approx(100 * 2 / 3), 3), "medium": (100, 1), "low": (25, 4), "all": (50, 8)}
    assert {row["model"] for row in rates.values()} == {"toy"}


def test_a_keyword_that_nobody_documents_is_valid_open_and_not_closed(table):
    rates = found(valid_rates(table))
    assert rates["medium", "valid_percent"]["value"] == 100
    assert rates["medium", "valid_closed_percent"]["value"] == 0
    assert rates["all", "valid_closed_percent"]["value"] == 37.5


def test_intervals_draw_whole_apis(table):
    """Two APIs: a resample has the first twice, both, or the second twice. High: 2/4, 2/3, 2/2. Low: 0/4, 1/4, 2/4."""
    rates = found(valid_rates(table))
    high, low = rates["high", "valid_percent"], rates["low", "valid_percent"]
    assert (high["ci_low"], high["ci_high"]) == (50, 100)
    assert (low["ci_low"], low["ci_high"]) == (0, 50)


def test_failure_shares_are_of_the_invalid_calls(table):
    modes = found(failure_modes(table))
    assert modes["low", "valid_percent"]["value"] == 25 and modes["low", "invalid_percent"]["value"] == 75
    assert (modes["low", "invalid_percent"]["ci_low"], modes["low", "invalid_percent"]["ci_high"]) == (50, 100)
    for name in ("incorrect_existing", "invalid_usage", "nonexistent"):
        assert modes["low", f"{name}_percent"]["value"] == pytest.approx(100 / 3)
        assert modes["low", f"{name}_percent"]["n"] == 3
    # the invented call is one of the two failures of get_it and none of the one of drop_it: 2/4, 1/3, 0/2
    assert (modes["low", "nonexistent_percent"]["ci_low"], modes["low", "nonexistent_percent"]["ci_high"]) == (0, 50)


def test_failure_modes_may_be_asked_of_several_classes(table):
    modes = found(failure_modes(table, ["high", "low"]))
    assert modes["high", "invalid_usage_percent"]["value"] == 100 and modes["high", "nonexistent_percent"]["value"] == 0
    assert {condition for condition, _ in modes} == {"high", "low"}


def test_a_class_without_failures_has_no_shares(table):
    modes = found(failure_modes(table, ["medium"]))
    assert math.isnan(modes["medium", "nonexistent_percent"]["value"]) and modes["medium", "nonexistent_percent"]["n"] == 0


def test_models_are_kept_apart(table):
    import pandas as pd

    other = judged("other", [answer(name, "") for name in CALLS], TASKS, INDEX)
    rows = valid_rates(pd.concat([table, other], ignore_index=True))
    assert [(row["model"], row["value"]) for row in rows if (row["condition"], row["metric"]) == ("all", "valid_percent")] == [
        ("toy", 50), ("other", 0)]


class Toy:
    """Answers every prompt with ``text``; gives each token of get_it the probability 1/2, the one of drop_it 1/16."""

    name = "toy"
    identity = {"name": "toy"}
    chat = None
    LOGPROBS = {"get_it": (math.log(1 / 2), math.log(1 / 2)), "drop_it": (math.log(1 / 16),)}

    def __init__(self, text=""):
        self.text = text

    def generate(self, requests, decoding):
        assert (decoding.temperature, decoding.stop_rule) == (0, None if self.chat else "first_call")
        yield [answer(prompt.id, self.text) for prompt, _ in requests]

    def score(self, requests):
        yield [answer(prompt.id, name, self.LOGPROBS[name]) for prompt, name in requests]


def test_perplexity_is_of_the_name_alone_over_tokens_and_by_class():
    """Tokens of 1/2, 1/2 and 1/16: the cube root of 2 * 2 * 16 is 4. Resamples have 2, 4 or 16."""
    tasks = [task("a", "high", GET), task("b", "high", DROP), task("c", "low", GET), task("d", "low", GET)]
    rows = found(name_perplexity(Toy(), tasks, store=False))
    assert list(rows) == [("high", "perplexity"), ("low", "perplexity")]
    high, low = rows["high", "perplexity"], rows["low", "perplexity"]
    assert (high["value"], high["ci_low"], high["ci_high"], high["n"]) == (pytest.approx(4), pytest.approx(2), pytest.approx(16), 3)
    assert (low["value"], low["n"]) == (pytest.approx(2), 4)
    assert (low["ci_low"], low["ci_high"]) == (1, math.inf), "one API says nothing about the spread"


@pytest.mark.parametrize(("chat", "valid"), [(None, False), (True, True)])
def test_only_a_chat_models_answer_loses_its_backticks(chat, valid):
    model = Toy('`get_bucket_location(Bucket="b")`')
    model.chat = chat
    asked = task("a", "low", "aws/s3.s3.get_bucket_location")
    assert list(invoke(model, [asked], store=False).valid) == [valid]
