"""A Hugging Face hub on this machine, as far as downloads go: it serves one folder under a name and
a revision.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

INFO = "info.json"  # what the hub says of the model; lies beside its files


class Handler(SimpleHTTPRequestHandler):
    """``/OWNER/NAME/resolve/REVISION/FILE`` and ``/api/models/OWNER/NAME/revision/REVISION``."""

    protocol_version = "HTTP/1.1"

    def translate_path(self, path: str) -> str:
        self.server.asked.append(path)
        return str(self.server.places.get(path.partition("?")[0], "absent"))

    def end_headers(self) -> None:
        self.send_header("ETag", f'"{abs(hash(self.path))}"')
        self.send_header("X-Repo-Commit", self.server.revision)
        self.send_header("X-Error-Code", "EntryNotFound")
        super().end_headers()

    def log_message(self, *_) -> None:
        """Keep the test's output quiet."""


@contextmanager
def serve(name: str, revision: str, folder: Path) -> Iterator[ThreadingHTTPServer]:
    """``server.endpoint`` is what ``HF_ENDPOINT`` names, ``server.asked`` the paths that were asked
    for.
    """
    files = sorted(folder.iterdir())
    info = {"id": name, "sha": revision, "siblings": [{"rfilename": one.name} for one in files]}
    (folder / INFO).write_text(json.dumps(info))
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.revision, server.asked = revision, []
        server.places = {f"/{name}/resolve/{revision}/{one.name}": one for one in files}
        server.places[f"/api/models/{name}/revision/{revision}"] = folder / INFO
        server.endpoint = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()
