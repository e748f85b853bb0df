#!/usr/bin/env bash
# safetensors 0.8.0: saving the same tensors with the same metadata gives different bytes in each process.
#
# Expected: equal content gives equal bytes, so a checksum identifies a checkpoint or an adapter. The format is simple (a JSON header, then the data), and
# tensors are written in a fixed order, whatever the order of the dict.
# Seen: if there are two or more metadata entries, `__metadata__` is written in the order of a hash map with a random seed. Twelve processes wrote several
# different files, and even two saves in one process differ. With one entry or none, all twelve files are equal.
# Why it matters: adapters and checkpoints are cached, compared and cited by the SHA-256 of their file. If the metadata has a step and a seed, two equal
# trainings look different, and a cache finds nothing.
# What to do: hash the tensors, or store a single entry with JSON in it.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet safetensors==0.8.0 numpy==2.4.6 2>/dev/null
cat >"$place/save.py" <<'PY'
import hashlib
import sys

import numpy as np
from safetensors.numpy import save

entries = {f"key{i}": str(i) for i in range(int(sys.argv[1]))}
print(hashlib.sha256(save({"b": np.ones(3), "a": np.zeros(2)}, metadata=entries)).hexdigest())
PY
files() {  # entries: how many different files twelve processes write
  for _ in $(seq 12); do PYTHONHASHSEED=0 "$place/venv/bin/python" "$place/save.py" "$1"; done | sort -u | wc -l | tr -d ' '
}
none=$(files 0) one=$(files 1) six=$(files 6)
echo "safetensors 0.8.0: different files of 12: $none without metadata, $one with one entry, $six with six entries"
[ "$none" = 1 ] && [ "$one" = 1 ] && [ "$six" -gt 1 ] || { echo "the behaviour changed" >&2; exit 1; }
