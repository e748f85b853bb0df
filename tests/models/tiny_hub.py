"""Serves a Hugging Face hub on this machine, for downloads only."""

import json
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from lookuplab.paths import write_text


class Handler(SimpleHTTPRequestHandler):
    """Answers ``/OWNER/NAME/resolve/REVISION/FILE`` and
    ``/api/models/OWNER/NAME/revision/REVISION``.
    """

    protocol_version = "HTTP/1.1"

    def end_headers(self):
        self.send_header("ETag", f'"{abs(hash(self.path))}"')
        self.send_header("X-Repo-Commit", self.path.split("/")[4])
        self.send_header("X-Error-Code", "EntryNotFound")
        super().end_headers()

    def log_message(self, *_):
        """Keep the test's output quiet."""


@contextmanager
def serve(root, name, revision):
    """Yield an address for ``HF_ENDPOINT``. The hub there serves every file below ``root``, at the
    file's path.
    """
    files = (root / name / "resolve" / revision).iterdir()
    info = {"id": name, "sha": revision, "siblings": [{"rfilename": one.name} for one in files]}
    told = root / "api" / "models" / name / "revision" / revision
    write_text(told, json.dumps(info))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=root)) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
