"""APIBench: the rule that compares calls, and what documents change."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab_notebooks.published import documents
from lookuplab_notebooks.published.apibench import (
    ApiBench,
    Question,
    calls_in,
    document_of,
    marked_part,
)

HUB = "tensorflowhub"


@pytest.mark.parametrize(
    ("answer", "is_named"),
    [
        (r"api_call: \"model = hub.load(\'https://x/cat/1\')\"", True),
        ("import tensorflow_hub as hub\\nm = hub.load('https://x/cat/1')", True),
        ('tensorflow.hub.load(handle="https://x/cat/1", trainable=True)', True),
        ("hub.KerasLayer('https://x/cat/1')", False),
        ("hub.load('https://x/cat/12')", False),
        ("hub.load(url)", False),
    ],
)
def test_a_call_is_named_by_its_function_and_its_texts(answer, is_named):
    [wanted] = calls_in("hub.load('https://x/cat/1')")
    assert any(wanted.names(call) for call in calls_in(marked_part(answer))) == is_named


def test_a_keyword_must_be_the_same_where_both_have_one():
    [wanted] = calls_in("pipeline('t', model='m')")
    named = [
        wanted.names(calls_in(f"pipeline({given})")[0])
        for given in ("'t', model='m'", "'t', 'm'", "'t', name='m'")
    ]
    assert named == [True, True, False]


def test_the_branch_of_a_repository_on_torch_hub_is_optional():
    [wanted] = calls_in("torch.hub.load(repo_or_dir='a/b', model='c')")
    assert wanted.names(calls_in("torch.hub.load('a/b:v1.0', 'c')")[0])


@given(st.text(max_size=200))
def test_any_text_can_be_judged(text):
    calls_in(marked_part(text))


# Documents


JSON = '{{"domain": "{}", "framework": 0, "api_call": "hub.load(\'{}\')", "api_arguments"'
KINDS = {
    JSON.format("Cats", "c"): "right",
    JSON.format("Cats", "c").replace("'", "\\'"): "right",  # as in a representation of a text
    JSON.format("Cats", "k"): "wrong_same_domain",
    JSON.format("Dogs", "d"): "wrong_other_domain",
}


@pytest.mark.parametrize("document", ["", *KINDS])
def test_the_kind_of_a_document_is_read_from_the_prompt(document):
    text = f"Cats?\nUse this API documentation for reference: {document}" if document else "Cats?"
    [reference] = calls_in("hub.load('c')")
    question = Question(
        HUB, "bm25", 1, text, reference, "hub.load('c')", "Cats", *document_of(text)
    )
    assert question.document_kind == KINDS.get(document, "none")


def answers(*rows):
    """Rows "arm question document reference" of FT, one hub; other verdicts are equal."""
    names = ["arm", "question", "document", "reference"]
    table = pd.DataFrame([row.split() for row in rows], columns=names)
    right = table.reference.eq("1")
    same = dict.fromkeys(["domain", "official_correct"], right)
    rest = dict.fromkeys(["official_hallucinated", "invented", "no_call"], False)
    table = table.assign(
        reference=right, model="FT", hub="h", cluster=table.question, **same, **rest
    )
    return documents.typed(table)


def test_answers_are_paired_by_question_and_the_break_even_is_where_gains_make_up_for_losses():
    table = answers(
        *(f"0_shot {number} none {int(number < 4)}" for number in range(8)),
        *(f"oracle {number} right {int(number != 7)}" for number in range(8)),
        *(f"bm25 {number} wrong_other_domain {int(number == 0)}" for number in range(8)),
    )
    rows = pd.DataFrame(documents.change_rows(table)).set_index(["condition", "metric"]).value
    assert rows["right/all - none/all", "domain_change_points"] == 37.5  # 7 of 8 against 4
    assert rows["wrong/all - none/all", "domain_change_points"] == -37.5
    assert [rows["wrong/all - none/all", f"domain_{name}"] for name in ("lost", "gained")] == [3, 0]
    lost = pd.DataFrame(documents.loss_rows(table)).set_index(["condition", "metric"]).value
    assert lost["wrong_other_domain/all", "domain_lost_percent"] == 75
    even = pd.DataFrame(documents.break_even_rows(table)).set_index(["condition", "metric"]).value
    assert even["all", "domain_break_even_percent"] == pytest.approx(50)


def test_the_committed_verdicts_count_what_the_official_scripts_count():
    apart = (documents.counts(documents.load()) - documents.official_counts()).abs()
    assert apart.to_numpy().max() == 0


# References that hold a call within a call, and answers that repeat their prompt

NESTED = "pipeline('qa', model=X.from_pretrained('org/a'))"


@pytest.mark.parametrize(
    ("answer", "is_named"),
    [
        (NESTED, True),
        ("model = X.from_pretrained('org/a')\npipeline('qa', model=model)", True),
        ("pipeline('qa', model=X.from_pretrained('org/b'))", False),
        ("pipeline('qa', model=model)", False),
        ("X.from_pretrained('org/a')", False),
    ],
)
def test_an_answer_names_the_model_that_a_reference_loads_within_its_call(answer, is_named):
    [reference, *_] = calls_in(NESTED)
    assert reference.is_made_by(calls_in(answer)) is is_named


@pytest.mark.parametrize(
    ("behind", "part"),
    [
        ('{"api_call": "hub.load(1)"}', "Find me a cat. "),
        ('{"api_call": "hub.load(1)"} <<<code>>>: f(2)', "Find me a cat. : f(2)"),
        ("[Document] ```python f(2)``` then", "Find me a cat. python f(2)"),
    ],
)
def test_a_repeated_document_is_no_answer(behind, part):
    answer = f"Find me a cat. Use this API documentation for reference: {behind}"
    assert marked_part(answer).startswith(part)
    assert "hub.load" not in marked_part(answer)


def test_a_mark_before_the_repeated_document_is_the_answer():
    answer = "<<<api_call>>>: f('a') Use this API documentation for reference: f('b')"
    assert calls_in(marked_part(answer))[0].arguments == (("", "a"),)


def test_a_line_of_an_authors_file_names_its_task():
    line = {"question_id": 7, "text": "f(1)", "model_id": "llama_index-FT-tf-may14"}
    bench = object.__new__(ApiBench)
    assert bench.line(line) == {"id": "tensorflowhub-gpt_index-7", "completion": "f(1)"}
    assert bench.line(line | {"model_id": "mine"}) == line | {"model_id": "mine"}
