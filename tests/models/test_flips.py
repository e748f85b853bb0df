"""Tests that a flipped bit in a store's file is reported in one line or does no harm, wherever the
bit is.

`pytest tests/models/test_flips.py --flips 25` flips more bits than a usual run. A seed draws the
bits, so they are the same in every run. Flipped bits in the record are tested in ``test_record``.
"""

import random

import pytest

from lookuplab.errors import UserError
from lookuplab.models import record
from lookuplab.run.audit import STORES

ASKED = 60  # rows of each kind in a store


@pytest.mark.parametrize("kind", STORES)
def test_any_flipped_bit_in_a_store_is_named_or_harmless(kind, request, tmp_path, capsys):
    file = tmp_path / "store.sqlite"
    keys = [key for keys in record.kinds(kind.name).values() for key in keys]
    answers = record.rows(kind.name, keys[:ASKED])
    with kind(file) as store:
        store.add(answers)
        store.db.execute("VACUUM")  # so that the file has each row only once
    data = file.read_bytes()
    key = keys[1].encode()
    row = data.index(key)
    # Three flips, each as (byte, bit). The first is near the end of the key, so the changed key has
    # the same position in the index. The second makes the text invalid UTF-8. The third is in the
    # checksum.
    parts = [(row + len(key) - 3, 0), (row + len(key), 7), (data.index(b"\n", row) + 1, 0)]
    draw = random.Random(0)
    flips = range(request.config.getoption("--flips"))
    anywhere = [(draw.randrange(len(data)), draw.randrange(8)) for _ in flips]
    for place in parts + anywhere:
        at, bit = place
        file.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
        try:
            with kind(file) as store:
                found = store.get(answers)
                assert found.items() <= answers.items(), place
                assert place in anywhere or len(found) == len(answers) - 1, place
                if any(key not in found for key in store.present(answers)):
                    assert f"{file}: " in capsys.readouterr().err, place
                store.add(answers)
                assert store.get(answers) == answers, place
        except UserError as error:
            said = str(error)
            assert f"{file}" in said and "\n" not in said, place
        for beside in tmp_path.glob("store.sqlite-*"):
            beside.unlink()
