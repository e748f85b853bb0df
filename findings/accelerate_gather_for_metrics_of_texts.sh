#!/usr/bin/env bash
# accelerate 1.15.0: gather_for_metrics loses answers as soon as one value of a batch is a text.
#
# Expected: of a batch with task names beside its tensors, gather_for_metrics gives all examples of all processes, without those that the
# sampler added to fill the last batch, as it does for tensors alone; or it raises an error.
# Seen, with two processes and ten examples: a dictionary of a tensor and a list of texts comes back as the list of its keys, once for each
# process. A tuple of them comes back as a list of four items, and the last batch keeps the two added examples. No warning.
# Started by plain python, both are right, so a test on one card passes.
# Why it matters: an evaluation gathers each answer with the name of its task. The last batch counts tasks twice, or all answers are gone.
# Gather a list with one item for each example (it is cut rightly), or tensors alone.
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
