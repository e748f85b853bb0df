#!/usr/bin/env bash
# accelerate 1.15.0: gather_for_metrics loses answers if a batch contains texts.
#
# Expected: gather_for_metrics returns the examples of all processes. It leaves out the copies that the sampler added to fill the last batch. This is
# what it does for batches of tensors. For batches that also have task names, it does the same or raises an error.
# Seen, with two processes and ten examples: if a batch is a dictionary with a tensor and a list of texts, only its keys come back, once from each
# process. If a batch is a tuple of the two, both come back, but with the two copies in the last batch. There is no warning.
# With a single process both results are right, so a test on one card passes.
# Why it matters: an evaluation gathers each answer with the name of its task. Then either the last batch counts tasks twice, or all answers are lost.
# What to do: gather a list with one item for each example, which is handled correctly, or tensors only.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 accelerate==1.15.0 2>/dev/null
cat >"$place/gather.py" <<'PY'
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

FORMS = {
    "tensors": lambda batch: {"n": torch.tensor(batch)},
    "items": lambda batch: [f"task{n}" for n in batch],
    "dictionary": lambda batch: {"n": torch.tensor(batch), "id": [f"task{n}" for n in batch]},
    "tuple": lambda batch: (torch.tensor(batch), [f"task{n}" for n in batch]),
}
accelerator = Accelerator(cpu=True)
for name, form in FORMS.items():
    loader = accelerator.prepare(DataLoader(range(10), batch_size=4, collate_fn=form))
    gathered = [accelerator.gather_for_metrics(batch) for batch in loader]
    if accelerator.is_main_process:
        print(f"{accelerator.num_processes} {name}: {gathered[-1]}")
PY
for launcher in "python" "torchrun --standalone --nproc_per_node 2"; do
  OMP_NUM_THREADS=1 "$place/venv/bin/"$launcher "$place/gather.py" 2>"$place/err" || { tail -3 "$place/err" >&2; exit 1; }
done | tee "$place/seen"
cat >"$place/wanted" <<'WANTED'
1 tensors: {'n': tensor([8, 9])}
1 items: ['task8', 'task9']
1 dictionary: {'n': tensor([8, 9]), 'id': ['task8', 'task9']}
1 tuple: (tensor([8, 9]), ['task8', 'task9'])
2 tensors: {'n': tensor([8, 9])}
2 items: ['task8', 'task9']
2 dictionary: ['n', 'id']
2 tuple: [tensor([8, 9, 0, 1]), ['task8', 'task9', 'task0', 'task1']]
WANTED
cmp --silent "$place/seen" "$place/wanted" || { echo "the behaviour changed" >&2; exit 1; }
