"""What a dry run says of prompts, tokens, hours."""

import pytest

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.results.artifact import read_csv
from lookuplab.results.verify import read_answers
from lookuplab.run import downloads, estimate
from lookuplab.run.notebooks import find, load_profile, plan

# asked are all tasks where the notebook takes a class; equal answers of several ways are one line
MORE = {
    "cloudapibench/table4_failure_modes": 2.4,
    "cloudapibench/fig7a_retriever_precision": 1.2,
    "stackoverflow/fig3_pass_at_k": 1.2,
    "stackoverflow/fig4_perturbation_robustness": 1.6,
    "stackoverflow/token_budget": 1.1,
    "toolgen/monitor_mode": 3,
    "toolgen/trigger_threshold": 6,
}


def job(name, profile="mini", **given):
    return plan(find(name), load_profile(profile), given)


def read(asked):
    return sum(tokens for tokens, _ in asked.values())


def test_as_many_prompts_are_counted_as_the_mini_profile_asked(monkeypatch):
    monkeypatch.setattr(estimate, "_length", lambda *_: 1)  # quick
    rows = read_answers(paths.FIGURES / "mini" / "answers.csv.gz")
    rows = rows.drop_duplicates(["notebook", "model", "prompt", "question", "sample"])
    papers = ("cloudapibench", "stackoverflow", "toolgen")
    for name, of_notebook in rows[rows.notebook.str.startswith(papers)].groupby("notebook"):
        model = of_notebook.model.iloc[0]
        true = of_notebook.groupby("model").size().iloc[0]
        counted = {key for key, (_, most) in estimate.questions(job(name), model).items() if most}
        # its wrong documents are others than the estimate's, of which a few prompts are alike
        least = 0.999 if "example_design" in name else 1
        assert true * least <= len(counted) <= true * MORE.get(name, 1), name


def test_first_prompts_have_the_record_s_tokens_and_documents_nearly_so():
    asked = estimate.questions(job("table1_base_models"), "mini-large")
    rows = record.rows("completions", asked)
    assert {key: row["prompt_tokens"] for key, row in rows.items()} == {
        key: tokens for key, (tokens, _) in asked.items()
    }
    cost = read_csv(paths.FIGURES / "mini/cloudapibench/table3_cost.csv")
    cost = cost[(cost.model == "mini-large") & (cost.metric == "prompt_tokens")]
    mean = cost.set_index("condition").value  # of the first prompt, and half of both others
    true = len(asked) * (2 * mean["dag/all"] - mean["base/all"])
    found = read(estimate.questions(job("table3_dag_plus_plus"), "mini-large"))
    assert found == pytest.approx(true, rel=0.1)


def test_a_model_that_is_elsewhere_is_estimated(monkeypatch):
    monkeypatch.setattr(downloads, "cached", lambda _: None)
    planned = [job("table1_base_models", "paper", models="bigcode/starcoder2-3b,http://h/v1#m")]
    local, remote = estimate.lines(planned, "H100")
    tokens = read(estimate.questions(planned[0], "http://h/v1#m"))
    assert (
        f"622 answers to make, 0 stored; about {tokens:,} tokens in, 159,232 out at most" in local
    )
    assert local.endswith(" min on H100")
    assert remote.endswith(f"; about {tokens:,} tokens in, 159,232 out at most")


def test_what_is_stored_is_not_asked_again_and_gives_the_mean_length():
    [line] = estimate.lines([job("table1_base_models", models="mini-large")], "H100")
    assert "mini-large: 0 answers to make, 622 stored; 0 tokens in, 0 to 0 out" in line


def test_an_unknown_gpu_is_one_line():
    planned = [job("table1_base_models", "paper", models="bigcode/starcoder2-3b")]
    with pytest.raises(UserError, match="--gpu is 'H1000'; it must be H100"):
        estimate.lines(planned, "H1000")
