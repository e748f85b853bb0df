"""A Hugging Face hub on this machine, as far as downloads go: it serves one folder under a name and a revision."""

import hashlib
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
        hub = self.server
        hub.asked.append(path)
        known = {f"/{hub.name}/resolve/{hub.revision}/{one}": one for one in hub.files}
        known[f"/api/models/{hub.name}/revision/{hub.revision}"] = INFO
        return str(hub.folder / known.get(path.partition("?")[0], "absent"))

    def end_headers(self) -> None:
        self.send_header("ETag", f'"{hashlib.sha256(self.path.encode()).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.server.revision)
        self.send_header("X-Error-Code", "EntryNotFound")
        super().end_headers()

    def log_message(self, *_) -> None:
        """Keep the test's output quiet."""


@contextmanager
def serve(name: str, revision: str, folder: Path) -> Iterator[ThreadingHTTPServer]:
    """``server.endpoint`` is what ``HF_ENDPOINT`` names, ``server.asked`` the paths that were asked for."""
    files = [one.name for one in folder.iterdir()]
    said = {"id": name, "sha": revision, "siblings": [{"rfilename": one} for one in files]}
    (folder / INFO).write_text(json.dumps(said))
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.name, server.revision, server.folder = name, revision, folder
        server.files, server.asked = files, []
        server.endpoint = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()
