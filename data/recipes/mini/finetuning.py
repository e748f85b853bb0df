"""Fine-tunes the mini models with the settings in ``finetuning.yaml``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookuplab import paths
from lookuplab.errors import check_choice
from lookuplab.models.training import Recipe
from lookuplab.toolgen.finetuning import finetune
from lookuplab.toolgen.pairs import Pair
from recipes import tables

SETTINGS = tables("mini/finetuning.yaml")


class QuestionPair(Pair):
    """A question (``docstring``) for a decoder, and the reply (``body``). The prompt is the
    question itself, without a template.
    """

    def prompt(self, kind: str) -> str:  # noqa: ARG002 (as a Pair has it)
        return self.docstring


def finetuned(
    task: str,
    model: str,
    base: str | Path,
    learned: Sequence[Pair],
    target: Path,
    about: str,
    marked: bool = False,
) -> Path:
    """Fine-tune the model ``base`` on pairs, write it to the folder ``target``, and return this
    folder. If the folder exists, nothing is trained.

    The settings are those of ``finetuning.yaml`` for the task and the model (a size or a family).
    Raises UserError if the file has no settings for the model.
    """
    check_choice(f"model for {task}", model, SETTINGS[task])
    settings: dict[str, Any] = SETTINGS[task][model]
    targets = settings.get("lora_targets")
    if not target.exists():
        finetune(
            base,
            learned,
            target,
            Recipe(**settings | {"lora_targets": targets and tuple(targets)}),
            marked=marked,
            half=True,
            work=paths.RUNS / "train" / task / target.name,
            save_every=50,
            about=about,
            licence="apache-2.0",
        )
    return target
