"""A model behind an address is told what DS-1000 tells chat models."""

import written_problems as written
from tiny_endpoint import TinyEndpoint

from lookuplab.models import Completion
from lookuplab.stackoverflow.asking import evaluate_ways
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import CHAT, load_problems
from lookuplab.stackoverflow.grader import Grader


class Fenced(TinyEndpoint):
    """Knows the answer and puts a fence around it."""

    def answer(self, _):
        text = f"```\n{written.REFERENCE}```\nThat is all."
        return Completion("p", 0, text, (text,), (0,), (0.0,), "eos", 1)


def test_a_remote_chat_model_is_told_ds1000s_text_and_its_fenced_answers_count(
    written_file, tmp_path, monkeypatch
):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "completions.sqlite"))
    problems = load_problems(written_file(written.record()))
    matches = {"1": [Snippet("s", "Read them", "numbers = [1]", "", "")]}
    ways = {"alone": {"examples": 0}, "with_one": {"examples": 1}}
    with Fenced(None) as server:
        name = f"{server.url}#tiny?chat=true&logprobs=false&tokenizer=mini-questions-small"
        trial = evaluate_ways([name], problems, matches, ways, 1, 64, Grader(sandbox="none"))
    assert [frame.passed.tolist() for frame in trial.frames.values()] == [[True], [True]]
    asked = [[(one["role"], one["content"]) for one in body["messages"]] for body in server.bodies]
    (first, (_, alone)), (second, (_, with_one)) = asked
    assert first == second == ("system", CHAT)
    assert alone == written.record()["prompt"] and with_one.endswith("</code>\n\n" + alone)
