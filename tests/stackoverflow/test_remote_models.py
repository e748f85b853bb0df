"""A model behind an address goes through a notebook, and is told what DS-1000 tells chat models."""

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import written_problems as written

from lookuplab.results.artifact import read_csv
from lookuplab.run.notebooks import Profile, Request, find, plan
from lookuplab.run.runner import run_jobs
from lookuplab.stackoverflow.ds1000 import CHAT

ASKED = []


class Endpoint(BaseHTTPRequestHandler):
    """A chat model that knows the answer and puts a fence around it; it gives no log-probabilities."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        ASKED.append([(one["role"], one["content"]) for one in body["messages"]])
        said = {"role": "assistant", "content": f"```\n{written.REFERENCE}```\nThat is all."}
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"message": said}]}).encode())


def test_a_remote_chat_model_is_told_ds1000s_text_and_its_fenced_answers_count(
    problems_file, tmp_path, monkeypatch
):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = "chat=true&logprobs=false&tokenizer=mini-questions-small"
        parameters = {
            "models": [f"http://127.0.0.1:{server.server_port}/v1#m?{options}"],
            "problems_file": str(problems_file(written.record())),
            "examples": [0, 1],
            "arms": [],
            "samples": 1,
            "sandbox": "none",
        }
        asked = Request(Profile(Path("remote.yaml"), parameters=parameters))
        monkeypatch.setenv("LOOKUPLAB_STORE", str(tmp_path / "completions.sqlite"))
        job = plan(find("fig3_pass_at_k"), asked)
        places = {"output": tmp_path / "run.ipynb", "figures": tmp_path}
        assert run_jobs([replace(job, **places)]) == [None]
        server.shutdown()
    table = read_csv(tmp_path / "remote/stackoverflow/fig3_pass_at_k.csv")
    assert table[table.condition.str.endswith("/all")].value.tolist() == [100, 100, 0]
    (_, (_, alone)), (_, (_, with_one)) = sorted(ASKED, key=str)
    assert alone == written.record()["prompt"] and with_one.endswith("</code>\n\n" + alone)
    assert all(told[0] == ("system", CHAT) for told in ASKED)
