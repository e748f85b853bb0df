"""A Hugging Face hub on this machine, as far as downloads go: it serves one folder under a name and a revision."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """``/OWNER/NAME/resolve/REVISION/FILE`` and ``/api/models/OWNER/NAME/revision/REVISION``."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(send_content=False)

    def do_GET(self) -> None:
        self.answer(send_content=True)

    def answer(self, send_content: bool) -> None:
        hub = self.server
        hub.asked.append(self.path)
        place, _, file = self.path.partition(f"/{hub.name}/resolve/{hub.revision}/")
        content = hub.folder / file
        if file and not place and content.is_file():
            body = content.read_bytes()
        elif self.path.startswith(f"/api/models/{hub.name}/revision/{hub.revision}"):
            names = [{"rfilename": one.name} for one in hub.folder.iterdir()]
            body = json.dumps({"id": hub.name, "sha": hub.revision, "siblings": names}).encode()
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("X-Repo-Commit", hub.revision)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", hub.revision)
        self.end_headers()
        if send_content:
            self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Keep the test's output quiet."""


@contextmanager
def serve(name: str, revision: str, folder: Path) -> Iterator[ThreadingHTTPServer]:
    """``server.endpoint`` is what ``HF_ENDPOINT`` names, ``server.asked`` the paths that were asked for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.name, server.revision, server.folder, server.asked = name, revision, folder, []
        server.endpoint = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        yield server
        server.shutdown()
