"""Tests the functions that read JSON Lines and Python files which others wrote."""

import codecs
import gzip
import lzma
import os
from contextlib import suppress
from pathlib import Path

import pytest
from doors import refused

from lookuplab.errors import UserError
from lookuplab.paths import json_lines, source_text, write_text

TEXT = "# -*- coding: {} -*-\nname = 'Zo\u00eb'\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (codecs.BOM_UTF8 + b"x = 1\r\ny = 2\r", "x = 1\ny = 2\n"),
        *((TEXT.format(one).encode(one), TEXT.format(one)) for one in ("latin-1", "cp1252")),
        ("x = 'Zo\u00eb'\n".encode("utf-16"), "x = 'Zo\u00eb'\n"),
        (b"# coding: rot13\nx = 1\n", "# coding: rot13\nx = 1\n"),
        (b"# coding: utf-16\nx = 1\n", "# coding: utf-16\nx = 1\n"),
        (b"x = '\xff'\n", "x = '\ufffd'\n"),
    ],
)
def test_python_is_read_as_python_reads_it(tmp_path, data, text):
    file = tmp_path / "m.py"
    file.write_bytes(data)
    assert source_text(file) == text


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (codecs.BOM_UTF8 + b'{"a": 1}\r\n', 1),
        (rb'{"a": "x\ud83d"}', "x?"),
        (rb'{"a": ["\ud83d\ude00", {"b": "\udc00"}]}', ["\U0001f600", {"b": "?"}]),
        (rb'{"a": "\\ud83d"}', r"\ud83d"),
        (b'{"a": null}', None),
        (b'{"a": "Zo\xeb"}', "Zo?"),
        ('{"a": "Zo\u00eb"}\r\n'.encode("utf-16"), "Zo\u00eb"),
        (gzip.compress('{"a": "Zo\u00eb"}'.encode("utf-16"), mtime=0), "Zo\u00eb"),
        (gzip.compress(b'{"a": 1}', mtime=0), 1),  # compressed, although its name does not say so
    ],
)
def test_a_line_of_json_is_text_that_can_be_written_again(tmp_path, line, value):
    file = tmp_path / "f.jsonl"
    file.write_bytes(line)
    assert [*json_lines(file)] == [(1, {"a": value})]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{,}", "[^:]* at column 2"),
        ('{"a": ', "[^:]* at column 6"),
        ('{"a": 1} x', "[^:]* at column 10"),
        ("[1]", "not an object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_line_is_reported_with_one_line_number_and_a_column(tmp_path, line, why):
    file = tmp_path / "f.jsonl"
    file.write_text(f"{{}}\n\n{line}\n")
    with refused(rf"line 3: {why}; each line must be") as error:
        [*json_lines(file)]
    assert str(error.value).count("line 3") == 1


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path):
    left = [tmp_path / f".[a].txt.{pid}.partial" for pid in (1, 2)]
    for file in left:
        file.touch()
    os.utime(left[0], (0, 0))
    write_text(tmp_path / "[a].txt", "1")
    assert [file.exists() for file in left] == [False, True]


def test_what_is_written_to_a_device_leaves_it_a_device():
    write_text(Path("/dev/null"), "x")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_changed_byte_of_a_compressed_file_is_read_or_refused(tmp_path, compress):
    whole = compress(b"".join(b'{"a": %d}\n' % number**3 for number in range(300)))
    file = tmp_path / "answers"
    for at in range(12, len(whole), len(whole) // 50):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 90]) + whole[at + 1 :])
        with suppress(UserError):
            [*json_lines(file)]
