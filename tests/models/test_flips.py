"""One flipped bit anywhere in a file of the record or of a store: named in one line, or harmless.

`pytest tests/models/test_flips.py --flips 1` makes all 212; here a share of them.
"""

import random
import shutil

import pytest

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.run.audit import STORES

RECORD = {"judgements": 25, "verdicts": 25, "completions": 12, "marks": 25, "SHA256SUMS": 25}
ASKED = 60  # rows of each kind in a store


@pytest.fixture
def flipped(request):
    """Files with one bit flipped, the same every time: where it was, and the file's content."""

    def each(file, count):
        data = file.read_bytes()
        draw = random.Random(file.name)
        for _ in range(max(1, round(count * request.config.getoption("--flips")))):
            at, bit = draw.randrange(len(data)), draw.randrange(8)
            file.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            yield at, bit
        file.write_bytes(data)

    return each


def keys_of(kind):
    return [key for keys in record.kinds(kind).values() for key in keys]


@pytest.mark.parametrize("changed", RECORD)
def test_any_flipped_bit_in_the_record_is_named_or_harmless(
    changed, flipped, tmp_path, monkeypatch
):
    kind = "judgements" if changed == record.MANIFEST else changed
    expected = record.rows(kind, keys_of(kind))
    shutil.copytree(record.folder(), tmp_path / "record")
    monkeypatch.setattr(paths, "MINI", tmp_path)
    file = tmp_path / "record" / (changed if changed == record.MANIFEST else f"{changed}.parquet")
    for place in flipped(file, RECORD[changed]):
        record._table.cache_clear()
        record._places.cache_clear()
        try:
            assert record.rows(kind, expected) == expected, place
        except UserError as error:
            said = str(error)
            assert f"{kind}.parquet is damaged" in said and "\n" not in said, place
            assert f"git checkout -- {file.parent}" in said


@pytest.mark.parametrize("kind", STORES)
def test_any_flipped_bit_in_a_store_is_named_or_harmless(kind, flipped, tmp_path, capsys):
    file = tmp_path / "store.sqlite"
    answers = record.rows(kind.name, keys_of(kind.name)[:ASKED])
    with kind(file) as store:
        store.add(answers)
    for place in flipped(file, 25):
        try:
            with kind(file) as store:
                found = store.get(answers)
                assert all(found[key] == answers[key] for key in found), place
                if any(key not in found for key in store.present(answers)):
                    assert f"{file}: " in capsys.readouterr().err, place
                store.add(answers)
                assert store.get(answers) == answers, place
        except UserError as error:
            said = str(error)
            assert f"{file}" in said and "\n" not in said, place
        for beside in tmp_path.glob("store.sqlite-*"):
            beside.unlink()
