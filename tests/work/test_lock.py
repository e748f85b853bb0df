"""Two commands never write one place."""

import json
import os
import subprocess
import sys

import pytest

from lookuplab.work import lock

HOLDS = """import sys, time
from pathlib import Path
from lookuplab.work.lock import alone
with alone(Path(sys.argv[1]), "writes it"):
    print("held", flush=True)
    time.sleep(600)"""


@pytest.fixture
def place(tmp_path):
    return tmp_path / "a folder" / "out.jsonl"


@pytest.fixture
def holder(place):
    call = [sys.executable, "-c", HOLDS, str(place)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def held(place):
    with lock.alone(place, "writes out.jsonl"):
        return json.loads(place.with_name(".out.jsonl.lock").read_text())["process"]


def test_the_second_is_told_who_is_the_first_and_nothing_is_left_afterwards(place, holder):
    with pytest.raises(lock.Taken, match=f"another lookuplab writes .*: process {holder.pid} on "):
        held(place)
    holder.kill()
    holder.wait()
    assert held(place) == os.getpid(), "the lock of a dead process is taken over"
    assert [*place.parent.iterdir()] == []


@pytest.mark.parametrize("left", ["", "{", '{"process": 1, "host"'])
def test_a_lock_that_was_cut_off_while_it_was_written_counts_for_nothing(place, left):
    place.parent.mkdir()
    place.with_name(".out.jsonl.lock").write_text(left)
    assert held(place) == os.getpid()


@pytest.mark.parametrize("beats", [True, False])
def test_a_process_on_another_machine_lives_as_long_as_it_touches_its_lock(
    place, monkeypatch, beats
):
    place.parent.mkdir()
    (file := place.with_name(".out.jsonl.lock")).write_text(
        json.dumps({"process": 1, "host": "another", "began": 0.0})
    )
    monkeypatch.setattr(lock.time, "sleep", lambda _: beats and os.utime(file))
    if beats:
        with pytest.raises(lock.Taken, match="process 1 on another"):
            held(place)
    else:
        assert held(place) == os.getpid()


def test_a_process_with_the_number_of_a_dead_one_is_another(place):
    place.parent.mkdir()
    own = {"process": os.getpid(), "host": lock.socket.gethostname(), "began": 0.0}
    place.with_name(".out.jsonl.lock").write_text(json.dumps(own))
    assert held(place) == os.getpid()


def test_a_second_command_with_the_same_output_is_refused(score, tmp_path):
    output = tmp_path / "judged.jsonl"
    line = {"id": 1, "candidate": "f()", "target": "f", "provider": "aws", "client": "s3"}
    with lock.alone(output, "writes it"):
        result = score("cloudapi", [line], "-o", output)
    assert (result.exit_code, output.exists()) == (2, False)
    assert result.output.startswith(f"error: another lookuplab writes {output}: process ")
    assert score("cloudapi", [line], "-o", output).exit_code == 0
    assert [file.name for file in tmp_path.glob("*judged*")] == ["judged.jsonl"]


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", "7", '{"process": "a"}', "[[[["])
def test_what_is_no_lock_of_ours_locks_nothing(tmp_path, content):
    (file := tmp_path / ".x.lock").write_text(content)
    with lock.alone(tmp_path / "x", "writes x"):
        assert "process" in file.read_text()
    assert not file.exists()
