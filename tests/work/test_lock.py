"""Tests that two commands never write to one place at the same time."""

import os
import subprocess
import sys
import threading

import pytest

from lookuplab import work

HOLDS = """import sys, time
from pathlib import Path
from lookuplab.work import hold_lock
with hold_lock(Path(sys.argv[1]), "writes it"):
    print("held", flush=True)
    time.sleep(600)"""


@pytest.fixture
def place(tmp_path):
    return tmp_path / "a folder" / "out.jsonl"


def held(place):
    with work.hold_lock(place, "writes out.jsonl"):
        return str(os.getpid()) in place.with_name(".out.jsonl.lock").read_text()


def test_the_second_is_told_who_is_the_first_and_nothing_is_left_afterwards(place):
    call = [sys.executable, "-c", HOLDS, str(place)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        told = f"another lookuplab writes .*: process {holder.pid} on "
        with pytest.raises(work.LockHeld, match=told):
            held(place)
        holder.kill()
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        assert held(place), "the lock of a dead process is taken over"
    assert [*place.parent.iterdir()] == []


@pytest.mark.parametrize("beats", [True, False])
def test_a_process_on_another_machine_lives_as_long_as_it_touches_its_lock(
    place, monkeypatch, beats
):
    monkeypatch.setattr(work, "SILENCE", 1.0)
    place.parent.mkdir()
    file = place.with_name(".out.jsonl.lock")
    file.write_text("filelock/2\npid=1\nhost=another\nmode=lease\ntoken=1\nduration=1.0\n")
    ended = threading.Event()

    def touch():
        while beats and not ended.wait(0.1):
            os.utime(file)

    (thread := threading.Thread(target=touch)).start()
    if beats:
        with pytest.raises(work.LockHeld, match="process 1 on another"):
            held(place)
    else:
        assert held(place)
    ended.set()
    thread.join()


def test_a_second_command_with_the_same_output_is_refused(score, tmp_path):
    output = tmp_path / "judged.jsonl"
    line = {"id": 1, "candidate": "f()", "target": "f", "provider": "aws", "client": "s3"}
    with work.hold_lock(output, "writes it"):
        result = score("cloudapi", [line], "-o", output)
    assert (result.exit_code, output.exists()) == (2, False)
    assert result.output.startswith(f"error: another lookuplab writes {output}: process ")
    assert score("cloudapi", [line], "-o", output).exit_code == 0
    assert [file.name for file in tmp_path.glob("*judged*")] == ["judged.jsonl"]


@pytest.mark.parametrize("content", ["", '{"process": 1, "host"'])
def test_what_is_no_lock_of_ours_locks_nothing(place, content):
    place.parent.mkdir()
    place.with_name(".out.jsonl.lock").write_text(content)
    assert held(place) and [*place.parent.iterdir()] == []
