"""Downloads against a real server on this machine: whole, cut off, resumed, wrong, unreachable."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lookuplab import data_sources

CONTENT = bytes(range(256)) * 400


class Server(ThreadingHTTPServer):
    """Serves CONTENT; ``cut`` bytes are the most that one answer gives, ``busy`` answers come as 503 first."""

    cut, busy, ranges = len(CONTENT), 0, True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.address = f"http://127.0.0.1:{self.server_port}/corpus.bin"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.server.asked.append(asked)
        if self.path != "/corpus.bin":
            return self.send_error(404)
        if self.server.busy:
            self.server.busy -= 1
            return self.send_error(503)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.server.ranges else 0
        rest = CONTENT[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: self.server.cut])

    def log_message(self, *_) -> None:
        """Keep the test's output quiet."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(data_sources, "_PAUSE", 0.01)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def get(kit, server):
    """Calls `lookuplab data get corpus` on a sources.toml of its own; fields can be changed."""
    def call(**changed) -> tuple[int, str]:
        fields = {"kind": "file", "address": server.address, "size": len(CONTENT),
                  "sha256": hashlib.sha256(CONTENT).hexdigest(), "licence": "CC0", "purpose": "a test"} | changed
        lines = [f'{name} = {str(value).lower() if isinstance(value, int) else repr(value)}' for name, value in fields.items()]
        (kit.root / "data").mkdir(exist_ok=True)
        (kit.root / "data/sources.toml").write_text("[corpus]\n" + "\n".join(lines))
        return kit.call("data", "get", "corpus")

    return call


@pytest.fixture
def file(kit):
    return kit.root / "data/downloads/corpus/corpus.bin"


def test_a_file_is_fetched_once(get, server, file):
    assert get()[0] == 0 and get()[0] == 0
    assert file.read_bytes() == CONTENT
    assert server.asked == [""]


def test_a_download_that_is_cut_off_goes_on_from_there(get, server, file):
    server.cut = 15_000
    code, said = get()
    assert code == 0, said
    assert file.read_bytes() == CONTENT
    assert server.asked == [""] + [f"bytes={15_000 * i}-" for i in range(1, 7)], "every part is asked for once"


def test_a_part_left_by_an_earlier_run_is_used(get, server, file):
    file.parent.mkdir(parents=True)
    file.with_name("corpus.bin.part").write_bytes(CONTENT[:1000])
    assert get()[0] == 0
    assert file.read_bytes() == CONTENT and server.asked == ["bytes=1000-"]


def test_a_server_without_ranges_is_read_anew(get, server, file):
    server.ranges = False
    file.parent.mkdir(parents=True)
    file.with_name("corpus.bin.part").write_bytes(b"rubbish")
    assert get()[0] == 0
    assert file.read_bytes() == CONTENT


def test_a_busy_server_is_asked_again(get, server):
    server.busy = 2
    assert get()[0] == 0


@pytest.mark.parametrize(("changed", "message"), [
    ({"sha256": "0" * 64}, f"sha256 {hashlib.sha256(CONTENT).hexdigest()}, not the 102,400 bytes with {'0' * 64} of"),
    ({"size": 100_000}, "gave 102,400 bytes"),
    ({"size": 200_000}, "cut off after 102,400 of 200,000 bytes"),
    ({"kind": "ftp"}, "kind 'ftp' is none of"),
    ({"sha256": ""}, "a file needs its size in bytes and its sha256"),
    ({"colour": "red"}, "unexpected keyword argument 'colour'"),
])
def test_wrong_bytes_and_wrong_entries_are_exit_code_2(get, file, changed, message):
    code, said = get(**changed)
    assert code == 2 and message in said, said
    assert not file.exists()


def test_a_file_with_the_wrong_hash_is_kept_aside_and_the_next_try_starts_anew(get, server, file):
    get(sha256="0" * 64)
    assert [path.name for path in file.parent.iterdir()] == ["corpus.bin.wrong"]
    assert get()[0] == 0 and file.read_bytes() == CONTENT
    assert server.asked == ["", ""]


def test_a_hash_that_is_not_known_is_that_of_the_first_download(get, server, file, monkeypatch):
    server.cut = 50_000
    assert get(size=0, sha256="", recorded=True)[0] == 0 and file.read_bytes() == CONTENT
    assert file.with_name("corpus.bin.sha256").read_text().split() == [
        str(len(CONTENT)), hashlib.sha256(CONTENT).hexdigest()]
    file.unlink()
    assert get(size=0, sha256="", recorded=True)[0] == 0, "the same bytes again"
    file.unlink()
    server.cut = len(CONTENT)
    monkeypatch.setitem(globals(), "CONTENT", CONTENT[::-1])
    code, said = get(size=0, sha256="", recorded=True)
    assert code == 2 and "corpus.bin.sha256; what came is kept as" in said and not file.exists()


def test_an_address_that_is_gone_is_not_tried_again(get, server):
    code, said = get(address=server.address + ".old")
    assert code == 2 and "answers 404" in said
    assert len(server.asked) == 1


def test_an_unreachable_address_is_told_after_some_attempts(get, server):
    code, said = get(address="http://127.0.0.1:9/corpus.bin")
    assert code == 2 and "does not answer" in said and "4 times" in said


def test_an_unknown_name_is_told_with_the_nearest(kit, get):
    get()
    code, said = kit.call("data", "get", "corpsu")
    assert code == 2 and "did you mean 'corpus'?" in said


def test_the_list_marks_what_is_there(kit, get):
    get()
    code, said = kit.call("data", "list")
    assert code == 0 and said.startswith("* corpus") and "licence: CC0" in said


def test_the_committed_list_is_complete():
    sources = data_sources.load()
    assert sources and all(source.licence and source.purpose for source in sources.values())
