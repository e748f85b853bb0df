"""A model behind an address is told what DS-1000 tells chat models."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import written_problems as written

from lookuplab.stackoverflow.asking import evaluate_ways
from lookuplab.stackoverflow.corpus import Snippet
from lookuplab.stackoverflow.ds1000 import CHAT, load_problems
from lookuplab.stackoverflow.grader import Grader

ASKED = []


class Endpoint(BaseHTTPRequestHandler):
    """A chat model that knows the answer and puts a fence around it, without log-probabilities."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        ASKED.append([(one["role"], one["content"]) for one in body["messages"]])
        said = {"role": "assistant", "content": f"```\n{written.REFERENCE}```\nThat is all."}
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(
            json.dumps({"choices": [{"message": said, "finish_reason": "stop"}]}).encode()
        )


def test_a_remote_chat_model_is_told_ds1000s_text_and_its_fenced_answers_count(
    written_file, tmp_path, monkeypatch
):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "completions.sqlite"))
    problems = load_problems(written_file(written.record()))
    matches = {"1": [Snippet("s", "Read them", "numbers = [1]", "", "")]}
    ways = {"alone": {"examples": 0}, "with_one": {"examples": 1}}
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = "chat=true&logprobs=false&tokenizer=mini-questions-small"
        name = f"http://127.0.0.1:{server.server_port}/v1#m?{options}"
        runs = Grader(sandbox="none")
        trial = evaluate_ways([name], problems, matches, ways, 1, 64, runs)
        server.shutdown()
    assert [frame.passed.tolist() for frame in trial.frames.values()] == [[True], [True]]
    (_, (_, alone)), (_, (_, with_one)) = sorted(ASKED, key=str)
    assert alone == written.record()["prompt"] and with_one.endswith("</code>\n\n" + alone)
    assert all(told[0] == ("system", CHAT) for told in ASKED)
