#!/usr/bin/env bash
# vcrpy 9.4.2: a recorded answer is played back to a request with another prompt, because the body of a request is not compared.
#
# Expected: a request gets the answer that was recorded for this request. A request that was not recorded raises an error (record mode "once") or reaches
# the server (record mode "new_episodes").
# Seen: by default vcrpy compares the method and the address. All prompts to a model go to one address, so the first request gets the first recorded
# answer, whatever it asks. If three prompts are asked in another order, each of them gets another prompt's answer. A prompt that was never recorded gets
# the old answer in both modes. No server is asked, and nothing warns.
# Why it matters: cassettes make tests and demonstrations of model pipelines repeatable. After an edit of a prompt, or with requests in parallel, the
# numbers are those of other prompts, and they look right.
# What to do: vcr.VCR(match_on=["method", "scheme", "host", "port", "path", "query", "body"]).
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet vcrpy==9.4.2 2>/dev/null
"$place/venv/bin/python" - "$place" <<'PY'
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import vcr
from vcr.errors import CannotOverwriteExistingCassetteException


class Server(BaseHTTPRequestHandler):
    """Answer each prompt with its text in capital letters."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = request["prompt"].upper().encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
Thread(target=server.serve_forever, daemon=True).start()
HEADERS = {"content-type": "application/json"}
folder = Path(sys.argv[1])
body_too = ["method", "scheme", "host", "port", "path", "query", "body"]


def answers(cassette, prompts, **options):
    with vcr.use_cassette(str(folder / cassette), **options):
        bodies = [json.dumps({"model": "m", "prompt": prompt}).encode() for prompt in prompts]
        requests = [Request(f"http://127.0.0.1:{server.server_port}/v1/completions", body, HEADERS) for body in bodies]
        return [urlopen(request).read().decode() for request in requests]


print("vcrpy", version("vcrpy"))
recorded = answers("three.yaml", ["one", "two", "three"])
swapped = answers("three.yaml", ["two", "three", "one"])
right = answers("three.yaml", ["two", "three", "one"], match_on=body_too)
print("recorded:", recorded, "asked for two, three, one:", swapped, "with the body compared:", right)
answers("one.yaml", ["one"])
unknown = {mode: answers("one.yaml", ["a new prompt"], record_mode=mode) for mode in ("once", "new_episodes")}
print("a new prompt:", unknown)
try:
    answers("one.yaml", ["a new prompt"], match_on=body_too)
    is_refused = False
except CannotOverwriteExistingCassetteException:
    is_refused = True
assert recorded == swapped == ["ONE", "TWO", "THREE"] and right == ["TWO", "THREE", "ONE"], "the behaviour changed"
assert unknown == {"once": ["ONE"], "new_episodes": ["ONE"]} and is_refused, "the behaviour changed"
PY
