"""The builder of the index: resumable, deterministic, and clear about what it needs."""

import lzma
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from lookuplab.cloudapi import build, specs
from lookuplab.cloudapi.specs import ApiSpec, Parameter, from_json, load_documentation, load_index, to_json
from lookuplab.errors import UserError

SMALL = {"aws": ["account", "cognito-sync"], "azure": ["eventhub", "secrets"]}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The builder over four small services, with its part files in a folder of its own (and a space in the name)."""
    for provider, names in SMALL.items():
        monkeypatch.setattr(build.SDKS[provider], "services", lambda names=names: names)
    monkeypatch.setattr(build, "PARTS", tmp_path / "part files")
    return tmp_path / "a folder"


def _bytes(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in (specs.INDEX.name, specs.DOCUMENTATION.name)]


def test_every_specification_of_the_index_survives_json():
    for spec in load_index().specs:
        assert from_json(to_json(spec)) == spec, spec.id


def test_the_index_is_sorted_and_ids_are_unique():
    ids = [spec.id for spec in load_index().specs]
    assert ids == sorted(ids) and len(set(ids)) == len(ids)


def test_the_data_card_states_the_numbers_of_the_index():
    card = (specs.INDEX.parent / "README.md").read_text("utf-8")
    found = load_index().specs
    flags = Counter(flag for spec in found if spec.operation for flag in spec.flags)
    assert f"| `index.jsonl.xz` | {len(found):,} |" in card
    assert f"| `documentation.jsonl.xz` | {len(load_documentation()):,} |" in card
    for flag, count in flags.items():
        assert f"| `{flag}` | {count:,} |" in card, flag


def test_every_api_has_documentation_of_at_most_5000_characters():
    pages = load_documentation()
    missing = [spec.id for spec in load_index().specs if spec.operation and not pages.get(spec.id)]
    assert not missing
    assert max(map(len, pages.values())) == 5_000
    assert pages.keys() <= load_index().by_id.keys()


def test_two_builds_give_the_same_bytes_and_leave_no_parts(small, tmp_path):
    build.build(["aws", "azure"], small, jobs=1)
    build.build(["azure", "aws"], tmp_path / "again", jobs=2)
    assert _bytes(small) == _bytes(tmp_path / "again")
    assert not list((tmp_path / "part files").glob("*"))
    services = {spec.service for spec in load_index(small / specs.INDEX.name).specs}
    assert services == {"account", "cognito-sync", "eventhub", "secrets"}


def test_one_provider_keeps_the_rows_of_the_other(small, tmp_path):
    build.build(["aws"], tmp_path / "parts", jobs=1)
    build.build(["azure"], tmp_path / "parts", jobs=1)
    build.build(["aws", "azure"], small, jobs=1)
    assert _bytes(small) == _bytes(tmp_path / "parts")


def test_a_killed_build_continues_with_the_missing_parts(tmp_path):
    """``kill -9`` after the first part: the second run keeps that part and makes the others as an undisturbed one."""
    def wanted(folder: str) -> dict:
        (tmp_path / folder).mkdir(exist_ok=True)
        return {("azure", s): tmp_path / folder / f"{s}.jsonl" for s in ("network", "eventhub", "secrets", "compute")}

    script = tmp_path / "build_some.py"
    script.write_text("import sys\nfrom pathlib import Path\nfrom lookuplab.cloudapi.build import make_parts\n"
                      "if __name__ == '__main__':\n"
                      "    make_parts({('azure', Path(p).stem): Path(p) for p in sys.argv[1:]}, jobs=1)\n")
    environment = os.environ | {"PYTHONPATH": str(Path(build.__file__).parents[2])}
    interrupted = wanted("interrupted")
    arguments = [sys.executable, script, *interrupted.values()]
    running = subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
    first = interrupted["azure", "compute"]  # the last one is made first
    deadline = time.monotonic() + 60
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.killpg(running.pid, signal.SIGKILL)  # its worker too, which would wait for work for ever
    running.wait()
    inode = first.stat().st_ino
    build.make_parts(interrupted, jobs=1)
    build.make_parts(wanted("undisturbed"), jobs=1)
    assert first.stat().st_ino == inode, "a finished part was made again"
    for key, path in wanted("undisturbed").items():
        assert path.read_bytes() == interrupted[key].read_bytes(), key


@pytest.mark.parametrize(("package", "found"), [("botocore", "1.34.108"), ("no-such-sdk", "none")])
def test_another_or_no_version_is_one_clear_line(package, found):
    with pytest.raises(UserError) as error:
        build.check_versions({package: "0.0.1"})
    assert f"{package} 0.0.1, installed is {found}" in str(error.value)
    assert 'pip install -c constraints.txt -e ".[sdk]"' in str(error.value)


def test_reading_the_index_needs_no_sdk():
    code = "import sys; import lookuplab.cloudapi.build; " \
           "sys.exit(any(m.split('.')[0] in ('boto3', 'botocore', 'azure', 'msrest') for m in sys.modules))"
    environment = os.environ | {"PYTHONPATH": str(Path(build.__file__).parents[2])}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_flags_say_which_names_do_not_tell_the_api():
    def spec(client, name):
        return ApiSpec("aws", client, client, name, (Parameter("Id", required=True),))

    found = build.flagged([
        spec("a", "put_thing"), spec("b", "put_thing"), spec("a", "begin_delete"), spec("a", "put_other_thing"),
        *(spec(client, "list_tags") for client in "abcde"),
    ])
    flags = {spec.id: spec.flags for spec in found}
    assert flags["aws/a.a.put_thing"] == ("shared_name",)
    assert flags["aws/a.a.begin_delete"] == ("generic_name",)
    assert flags["aws/a.a.put_other_thing"] == ()
    assert flags["aws/e.e.list_tags"] == ("generic_name", "shared_name")


def test_methods_of_one_service_are_told_apart_where_class_names_are_equal():
    compute = load_index().methods("azure", "Operations", "compute")
    assert compute["list"].service == "compute"
    with pytest.raises(UserError, match="no client 'Operations' of service 'blob'"):
        load_index().methods("azure", "Operations", "blob")


def test_the_command_says_what_it_wrote(small):
    result = CliRunner().invoke(build.command, ["--only", "azure", "--jobs", "1", "--output", str(small)])
    assert result.exit_code == 0, result.output
    assert f"31 APIs written to {small}" in result.output


@pytest.mark.parametrize("content", [b"text", lzma.compress(b"{}\n"), lzma.compress(b"[]\n"), lzma.compress(b"{}\n" * 99)[:60]])
def test_what_is_no_index_is_one_clear_line(tmp_path, content):
    (tmp_path / "index.xz").write_bytes(content)
    for load in (load_index, load_documentation):
        with pytest.raises(UserError, match="index.xz is no API index"):
            load(tmp_path / "index.xz")
        with pytest.raises(UserError, match="no API index at"):
            load(tmp_path / "absent.xz")
