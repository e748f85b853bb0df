"""The account of a fine-tuning: progress bar, log.csv, TensorBoard, and the seconds of all parts of a resumed run."""

import csv
import importlib.util
import math
import time
from pathlib import Path

from tqdm import tqdm
from transformers import PrinterCallback, TrainerCallback
from transformers.integrations import TensorBoardCallback

from lookuplab.errors import UserError

FIELDS = ("step", "epoch", "loss", "learning_rate", "seconds")


class Books(TrainerCallback):
    """Bar and log.csv. The lines live in the Trainer's own state, so a resumed run has those before the kill too."""

    def __init__(self, log: Path, name: str, progress: bool):
        self.log, self.name, self.progress = log, name, progress
        self.before, self.began, self.bar = 0.0, time.monotonic(), None

    @property
    def seconds(self) -> float:
        """Of training, as far as the last log line before a kill, and since."""
        return self.before + time.monotonic() - self.began

    def on_train_begin(self, args, state, control, **_):
        self.before = max((line.get("seconds", 0.0) for line in state.log_history), default=0.0)
        self.began = time.monotonic()
        self.bar = tqdm(total=state.max_steps, initial=state.global_step, desc=f"train {self.name}", unit="step",
                        mininterval=2, disable=not (self.progress and state.is_world_process_zero))

    def on_step_end(self, args, state, control, **_):
        self.bar.update()
        control.should_log |= state.global_step >= state.max_steps

    def on_log(self, args, state, control, **_):
        state.log_history[-1]["seconds"] = round(self.seconds, 1)
        if not math.isfinite(state.log_history[-1].get("loss", 0.0)):
            raise UserError(f"the loss is not finite any more at step {state.global_step}; "
                            "lower the learning rate, or train in float32")
        if state.is_world_process_zero:
            rows = lines(state.log_history)
            self.bar.set_postfix_str(f"loss {rows[-1]['loss']:.3f}" if rows else "")
            write(self.log, rows)

    def on_train_end(self, args, state, control, **_):
        self.bar.close()


def lines(history: list[dict]) -> list[dict]:
    """The rows of log.csv: mean loss in nats a token since the last row, rate of the last step, epochs and seconds."""
    return [{name: line[name] for name in FIELDS} for line in history if "loss" in line]


def write(path: Path, rows: list[dict]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def tensorboard(folder: Path, step: int) -> list[TrainerCallback]:
    """TensorBoard's events from ``step`` on, where the package is installed."""
    if importlib.util.find_spec("tensorboard") is None:
        return []
    from torch.utils.tensorboard import SummaryWriter

    return [TensorBoardCallback(SummaryWriter(folder, purge_step=step))]
