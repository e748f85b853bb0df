"""An OpenAI-compatible server in a thread: a tiny local model behind ``/v1/completions`` and
``/v1/chat/completions``.

It gives log-probabilities, honours stop strings, and misbehaves on demand: ``failures`` is a list
of (status, headers) that are sent before anything is answered, ``reply`` a (status, headers, body)
in place of every answer. It counts what a test wants to know.
"""

import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lookuplab.models import Decoding, Prompt

KEY = "sk-test-0123456789-very-secret"


class TinyEndpoint(ThreadingHTTPServer):
    """Answers while it is a context. ``model`` is a local one; ``url`` is what a client wants."""

    daemon_threads = True

    def __init__(self, model):
        super().__init__(("127.0.0.1", 0), Handler)
        self.model, self.lock = model, threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.reset()

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()

    def reset(self):
        self.failures, self.bodies, self.most_at_once, self.in_flight = [], [], 0, set()
        self.seconds, self.gives_logprobs = 0.0, True
        self.wants_key = self.like_llama_cpp = False
        self.reply = None
        self.refused = ()  # parameters that it does not accept

    def answer(self, body):
        """The model's greedy answer."""
        text = body.get("prompt") or self.model.tokenizer.apply_chat_template(
            body["messages"], tokenize=False, add_generation_prompt=True
        )
        most = body.get("max_tokens") or body["max_completion_tokens"]
        decoding = Decoding(max_new_tokens=most)
        with self.lock:
            ((done,),) = self.model.generate([(Prompt("p", text), 0)], decoding)
        return done


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):  # /v1/models
        listed = {"object": "list", "data": [{"id": "tiny", "object": "model"}]}
        self.send(200, (), json.dumps(listed).encode())

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            server.bodies.append(body)
            server.in_flight.add(self)
            server.most_at_once = max(server.most_at_once, len(server.in_flight))
            failure = server.failures.pop(0) if server.failures else None
        time.sleep(server.seconds)
        told, headers, said = self.headers.get("authorization"), (), ""
        if server.wants_key and told != f"Bearer {KEY}":
            status, said = 401, f"Incorrect API key provided: {told}"
        elif failure:
            (status, headers), said = failure, f"no luck\nfor {told} serving {body}"
        elif body["model"] != "tiny":
            status, said = 404, f"The model `{body['model']}` does not exist"
        elif refused := [name for name in server.refused if name in body]:
            status, said = 400, f"Unsupported parameter: '{refused[0]}' is not supported"
        else:
            status = 200
        data = json.dumps({"error": {"message": said}} if said else self.response(body)).encode()
        if status == 200 and server.reply:
            status, headers, data = server.reply
        with server.lock:  # before the answer is sent, because its reader may ask again at once
            server.in_flight.discard(self)
        with suppress(BrokenPipeError, ConnectionResetError):  # the client's time was out
            self.send(status, headers, data)

    def send(self, status, headers, data):
        self.send_response(status)
        kind, length = ("content-type", "application/json"), ("content-length", len(data))
        for header in (kind, length, *headers):
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(data)

    def response(self, body):
        done, chat = self.server.answer(body), "messages" in body
        text, finish = done.text, "stop" if done.finish_reason == "eos" else "length"
        for stop in body.get("stop") or ():
            if stop in text:
                text, finish = text[: text.index(stop)], "stop"
        pieces, logprobs = list(done.tokens), done.token_logprobs
        if done.finish_reason == "eos":
            pieces[-1] = "</s>"  # the end token is listed
        if chat or self.server.like_llama_cpp:
            pairs = zip(pieces, logprobs, strict=True)
            given = {"content": [{"token": one, "logprob": value} for one, value in pairs]}
        else:
            given = {"tokens": pieces, "token_logprobs": logprobs}
        wanted = self.server.gives_logprobs and body.get("logprobs")
        said = {"message": {"content": text}} if chat else {"text": text}
        choice = {"finish_reason": finish, "logprobs": given if wanted else None}
        return {"choices": [choice | said], "usage": {"prompt_tokens": done.prompt_tokens}}
