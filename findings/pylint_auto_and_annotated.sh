#!/usr/bin/env bash
# pylint 4.1.4: a value made by enum.auto() and a call of an Annotated type are errors.
#
# Expected: a program that runs has no E1101 (no-member): the value of a StrEnum's member is a text, and Annotated[str, ...] makes a text.
# Seen: `Colour.RED.value.upper()` is "Instance of 'auto' has no 'upper' member", and so is an Enum's `.value.bit_length()`. With
# Name = Annotated[str, "..."], `Name("x").upper()` is "Instance of 'Annotated' has no 'upper' member". Without auto() and Annotated both are clean.
# Why it matters: benchmarks count no-member errors as invented APIs. The more modern an answer's typing is, the more it invents.
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
