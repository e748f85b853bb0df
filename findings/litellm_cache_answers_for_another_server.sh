#!/usr/bin/env bash
# litellm 1.110.2: with a cache, a request to one server gets the answer of another server, and a request with another min_p or extra_body the old answer.
#
# Expected: a cached answer is used again only for the same request to the same server. For temperature, top_k, seed and stop this is so.
# Seen: the key of the cache does not contain api_base, extra_body, chat_template_kwargs, min_p, repetition_penalty or guided_regex, although all reach the
# server. If any of these changes, LiteLLM returns the first answer, and asks no server. (With `pip install litellm` alone, the first answer from the cache
# ends in a ModuleNotFoundError for fastapi.)
# Why it matters: servers of local models (vLLM) need these parameters, for example to turn reasoning off or to force a format. Whoever compares two servers
# that call their models the same, or the same model with and without reasoning, gets equal numbers.
# What to do: use one cache per server and setting, such as Cache(type="disk", disk_cache_dir=...).
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet litellm==1.110.2 soundfile==0.14.0 fastapi==0.165.0 orjson==3.13.0 2>/dev/null # for a hit of the cache
LITELLM_LOCAL_MODEL_COST_MAP=True "$place/venv/bin/python" -W ignore - <<'PY'
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from threading import Thread

import litellm


class Server(BaseHTTPRequestHandler):
    """Answer each request with the server's name and the number of the request."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.requests += 1
        message = {"role": "assistant", "content": f"{self.server.name} {self.server.requests}"}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        text = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def serve(name):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.name, server.requests = name, 0
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def ask(server, **options):
    messages = [{"role": "user", "content": "hello"}]
    return litellm.completion("openai/m", messages, api_base=server, api_key="none", caching=True, **options).choices[0].message.content


one, two = serve("one"), serve("two")
litellm.cache = litellm.Cache(type="local")
print("litellm", version("litellm"))
print("one, without options:", ask(one))
changes = [{"temperature": 0.5}, {"top_k": 5}, {"seed": 1}]
missed = [{"min_p": 0.1}, {"repetition_penalty": 1.2}, {"guided_regex": "a"}, {"extra_body": {"top_k": 1}}]
missed.append({"chat_template_kwargs": {"enable_thinking": False}})
seen = []
for options in changes + missed:
    seen.append(ask(one, **options))
    print(f"one, {options}: {seen[-1]}")
other = ask(two)
print("two, without options:", other)
assert seen == ["one 2", "one 3", "one 4"] + ["one 1"] * 5 and other == "one 1", "the behaviour changed"
PY
