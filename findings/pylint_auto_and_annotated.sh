#!/usr/bin/env bash
# pylint 4.1.4: a method of a value made by enum.auto(), or of the result of calling an Annotated type, is reported as a missing member.
#
# Expected: a program that runs has no error E1101 (no-member). The value of a StrEnum's member is a text, and so is the result of calling an
# Annotated[str, ...] type.
# Seen: for `Colour.RED.value.upper()`, pylint says "Instance of 'auto' has no 'upper' member". It says the same of `.value.bit_length()` of an Enum. With
# Name = Annotated[str, "..."], it says of `Name("x").upper()` that "Instance of 'Annotated' has no 'upper' member". Without auto() and Annotated, the
# same programs have no error.
# Why it matters: benchmarks count no-member errors as invented APIs. The more an answer uses modern typing, the more it seems to invent.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pylint==4.1.4 astroid==4.3.4 2>/dev/null
cd "$place"
cat >modern.py <<'PY'
from enum import Enum, StrEnum, auto
from typing import Annotated


class Colour(StrEnum):
    RED = auto()


class Number(Enum):
    ONE = auto()


Name = Annotated[str, "of a bucket"]
print(Colour.RED.value.upper(), Number.ONE.value.bit_length(), Name("x").upper())
PY
sed 's/= auto() *$/= "red"/; s/Annotated\[str, "of a bucket"\]/str/; s/\.bit_length/.lower/' modern.py >plain.py
echo "runs: $("$place/venv/bin/python" modern.py)"
for file in plain modern; do
  "$place/venv/bin/pylint" --disable=all --enable=E --score=no --msg-template='{msg_id} {msg}' "$file.py" | grep '^E' >"$file.errors" || true
  echo "pylint 4.1.4: $(wc -l <"$file.errors") errors in $file.py"
  cat "$file.errors"
done
[ "$(wc -l <plain.errors) $(grep -c "^E1101 Instance of '\(auto\|Annotated\)' has no" modern.errors)" = "0 3" ] || { echo "the behaviour changed" >&2; exit 1; }
