"""Runs an OpenAI-compatible server in a thread: a tiny local model behind ``/v1/completions`` and
``/v1/chat/completions``.

The server gives log-probabilities, honours stop strings, and misbehaves on demand. Each request
takes a status from the list ``failures`` and fails with it, until the list is empty. The keys of
``reply`` (body, status, headers) replace parts of every reply. ``script`` maps a request to the
message that the model answers in a chat. After ``lives`` requests, the server stops answering.
``bodies`` and ``most_at_once`` tell which requests came, and how many at the same time.
"""

import json
import math
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lookuplab.models import Decoding, Prompt

KEY = "sk-test-0123456789-very-secret"


class TinyEndpoint(ThreadingHTTPServer):
    """A server that answers inside its ``with`` block. ``model`` is a local model, and ``url`` is
    the address for clients.
    """

    daemon_threads = True
    lock = threading.Lock()  # one for all servers, because they may share the model

    def __init__(self, model):
        super().__init__(("127.0.0.1", 0), Handler)
        self.model = model
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.reset()

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()

    def reset(self):
        self.failures = []
        self.bodies = []
        self.most_at_once = 0
        self.in_flight = set()
        self.lives = math.inf
        self.gives_logprobs = True
        self.pause = lambda: None  # called before each answer
        self.reply = {}
        self.script = None
        self.drips = False  # whether a reply ends with blanks that are sent one by one
        self.refused = ()  # parameters that the server refuses

    def answer(self, body):
        """Return the model's greedy answer."""
        text = body.get("prompt") or self.model.tokenizer.apply_chat_template(
            body["messages"], tokenize=False, add_generation_prompt=True
        )
        most = body.get("max_tokens") or body["max_completion_tokens"]
        with self.lock:
            asked = [(Prompt("p", text), 0)]
            ((done,),) = self.model.generate(asked, Decoding(max_new_tokens=most))
        return done


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        server = self.server
        status = 200
        said = ""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            if len(server.bodies) >= server.lives:
                return
            server.bodies.append(body)
            server.in_flight.add(self)
            server.most_at_once = max(server.most_at_once, len(server.in_flight))
            failure = server.failures.pop() if server.failures else None
        server.pause()
        key = self.headers["authorization"]
        if "wrong" in key:
            status = 401
            said = f"Incorrect API key provided: {key}"
        elif failure:
            status = failure
            said = f"no luck\nfor {key} serving {body}"
        elif body["model"] != "tiny":
            status = 404
            said = f"The model `{body['model']}` does not exist"
        elif refused := [name for name in server.refused if name in body]:
            status = 400
            said = f"Unsupported parameter: '{refused[0]}' is not supported"
        else:
            given = self.response(body)
        told = {"error": {"message": said}} if said else given
        # The request no longer counts as in flight when its answer is sent, because the client may
        # then send the next request at once.
        with server.lock:
            server.in_flight.remove(self)
        with suppress(ConnectionError):  # the client no longer waits
            self.send({"status": status, "body": json.dumps(told)} | server.reply)

    def send(self, reply):
        data = reply["body"].encode() + b" " * 9999 * self.server.drips
        self.send_response(reply.get("status", 200))
        headers = {"content-type": "application/json", "content-length": len(data)}
        for header in (headers | reply.get("headers", {})).items():
            self.send_header(*header)
        self.end_headers()
        while self.server.drips:
            time.sleep(0.05)
            self.wfile.write(b" ")
        self.wfile.write(data)

    def response(self, body):
        if self.server.script:
            choice = {"finish_reason": "stop", "message": self.server.script(body)}
            return {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
        done = self.server.answer(body)
        chat = "messages" in body
        text = done.text
        finish = "stop" if done.finish_reason == "eos" else "length"
        for stop in body.get("stop") or ():
            if stop in text:
                text = text[: text.index(stop)]
                finish = "stop"
        pieces = list(done.tokens)
        logprobs = done.token_logprobs
        if done.finish_reason == "eos":
            pieces[-1] = "</s>"  # the end token is listed, but is not in the text
        if chat:
            pairs = zip(pieces, logprobs, strict=True)
            given = {"content": [{"token": one, "logprob": value} for one, value in pairs]}
        else:
            given = {"tokens": pieces, "token_logprobs": logprobs}
        wanted = self.server.gives_logprobs and body.get("logprobs")
        said = {"message": {"content": text}} if chat else {"text": text}
        choice = {"finish_reason": finish, "logprobs": given if wanted else None}
        return {"choices": [choice | said], "usage": {"prompt_tokens": done.prompt_tokens}}
