"""Fine-tuning of every mini model, with the settings in ``finetuning.yaml``."""

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
    """A question (``docstring``) for a decoder and its reply (``body``), both used without a
    template.
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
    **changes: Any,
) -> Path:
    """Return ``target``, the folder of ``base`` fine-tuned on these pairs. It is trained unless it
    exists.

    The settings are those in the file for a task and a model (a size or a family), with
    ``changes``.
    """
    check_choice(f"model for {task}", model, SETTINGS[task])
    settings: dict[str, Any] = SETTINGS[task][model] | changes
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
