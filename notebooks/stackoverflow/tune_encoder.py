"""Fine-tunes the sentence encoder that ranks by descriptions, on titles of duplicate questions
(paper, Section 4.3, after Heyman and Van Cutsem 2020, Section 4.2).

Two titles of one question should be near each other, titles of different questions far apart. The
log-odds that two titles are duplicates are 15 c - 5, where c is the cosine of the titles' vectors.
The loss is the binary cross-entropy. nokia/codesearch starts from the numbers 15 and 5 and trains
them, too. Here they stay fixed, because at this learning rate training would change them by only a
tenth.
"""

import copy
import json
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import click
import torch

from lookuplab import paths
from lookuplab.errors import UserError, needs
from lookuplab.models.training import Milestones, last_checkpoint
from lookuplab.paths import hashed
from lookuplab.retrieval.rankers import sentence_encoder
from lookuplab.run import downloads
from lookuplab.run.cli import HELP, Group, claim, command, with_settings
from lookuplab.run.commands.train import steady

with needs("rank"):
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer import losses
with needs("train"):
    from datasets import Dataset, IterableDataset

WORK = paths.RUNS / "train" / "encoder"  # the folder of the checkpoints
Titles = tuple[str, str]
Row = dict[str, Any]  # the titles ``one`` and ``other``; ``label``: 1 for duplicates, else 0


@dataclass(frozen=True)
class Recipe:
    """Everything that determines the weights, in addition to the base and the titles.

    ``steps``, ``learning_rate`` and ``validation`` (pairs, a fifth of 8,000) are the paper's.
    ``batch_size`` (rows) and ``negatives`` (pairs of different questions for each pair of
    duplicates) are those of nokia/codesearch.
    """

    steps: int = 12_000
    learning_rate: float = 1e-5
    batch_size: int = 512
    negatives: int = 5
    validation: int = 1_600
    seed: int = 42


def read_duplicates(file: Path) -> list[Titles]:
    """Return pairs of titles of one question. Each line of the file is a JSON list of such titles.
    It gives one pair: the first title, and the next title that differs from it. If all titles are
    equal, the line gives no pair. Raises UserError for a line that is not a list of titles.
    """
    found = []
    with paths.open_text(file) as lines:
        for number, line in enumerate(lines, 1):
            try:
                titles = json.loads(line)
                first, *others = map(str.strip, titles if isinstance(titles, list) else ())
            except (ValueError, TypeError):
                raise UserError(f"{file}: line {number} is not a list of titles") from None
            found += [(first, other) for other in others if other != first][:1]
    return found


def rows(pairs: Sequence[Titles], recipe: Recipe, epoch: int = 0) -> Iterator[Row]:
    """Yield one epoch: each pair of duplicates (label 1), then ``negatives`` pairs of titles of
    different questions (label 0).
    """
    chance = random.Random(f"{recipe.seed} {epoch}")
    for one, other in chance.sample(pairs, len(pairs)):
        yield {"one": one, "other": other, "label": 1.0}
        for _ in range(recipe.negatives):
            first, second = (chance.choice(pair) for pair in chance.sample(pairs, 2))
            yield {"one": first, "other": second, "label": 0.0}


def log_odds(cosine: Any) -> Any:
    """Return the log-odds that two titles belong to one question, (n,) tensors."""
    return 15 * cosine - 5


def tune(
    base: str,
    pairs: Sequence[Titles],
    output: Path,
    recipe: Recipe,
    work: Path,
    save_every: int = 100,
) -> dict[str, Any]:
    """Fine-tune the encoder ``base`` (folder or name) and write it to the folder ``output``. Return
    the facts about the training that the folder's card.json contains.

    Every ``save_every`` steps the loss on the pairs for validation is computed and a checkpoint is
    written to ``work``, from which the same call resumes. The checkpoint with the lowest loss is
    the result (in the paper, the checkpoint of step 5,300). Raises UserError if ``output`` exists
    or there are too few pairs.
    """
    if output.exists():
        raise UserError(f"{output} exists; delete it, or choose another output")
    apart = sorted(pairs, key=lambda pair: hashed(f"{recipe.seed} {pair}"))
    held = apart[: recipe.validation]
    learned = apart[recipe.validation :]
    if min(len(held), len(learned)) < 2:
        raise UserError(f"{len(pairs)} pairs are too few to hold out {recipe.validation}")
    work = work / hashed(f"{base} {recipe} {pairs}")[:12]

    def every() -> Iterator[Row]:
        return (row for epoch in count() for row in rows(learned, recipe, epoch))

    data = Dataset.from_list([*rows(held, recipe)])
    model = copy.deepcopy(sentence_encoder(base))
    arguments = SentenceTransformerTrainingArguments(
        str(work),
        max_steps=recipe.steps,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="constant",
        per_device_train_batch_size=recipe.batch_size,
        per_device_eval_batch_size=recipe.batch_size,
        seed=recipe.seed,
        logging_steps=save_every,
        save_steps=save_every,
        eval_steps=save_every,
        eval_strategy="steps",
        eval_on_start=True,
        save_total_limit=2,
        load_best_model_at_end=True,
        report_to="none",
        dataloader_pin_memory=torch.cuda.is_available(),
        accelerator_config={"dispatch_batches": False},  # bags of words cannot be sliced
    )
    trainer = SentenceTransformerTrainer(
        model,
        arguments,
        train_dataset=IterableDataset.from_generator(every, features=data.features),
        eval_dataset=data,
        loss=losses.CosineSimilarityLoss(model, torch.nn.BCEWithLogitsLoss(), log_odds),
        callbacks=[Milestones()],
    )
    trainer.train(resume_from_checkpoint=last_checkpoint(work))
    state = trainer.state
    facts = {
        "base": base,
        "recipe": asdict(recipe),
        "pairs": len(learned),
        "validation_loss": state.best_metric,
        "validation_loss_before": next(
            line["eval_loss"] for line in state.log_history if "eval_loss" in line
        ),
        "taken_step": state.best_global_step,
        "versions": {name: metadata.version(name) for name in ("torch", "sentence-transformers")},
    }
    part = output.with_name(f".{output.name}.partial")
    shutil.rmtree(part, ignore_errors=True)
    trainer.model.save(str(part), create_model_card=False)
    (part / "card.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    part.rename(output)
    shutil.rmtree(work)
    return facts


@command()
def main(
    *,
    base: str = "sentence-transformers/all-MiniLM-L6-v2",
    duplicates: str = "so-duplicates",
    output: Path = paths.DOWNLOADS / "so-duplicates" / "encoder",
    setting: tuple[str, ...] = (),
) -> None:
    """Fine-tune the sentence encoder that ranks snippets by their descriptions (Section 4.3), on
    titles of duplicate questions. The paper profile uses the result.

    If a run is killed, repeat the command to resume from the last checkpoint. The checkpoint with
    the lowest loss on the pairs for validation is kept.

    Settings (-s): steps, learning_rate, batch_size (rows), negatives (pairs of different questions
    for each pair of duplicates), validation (pairs held out), and seed.

    \b
    Examples:
      python notebooks/stackoverflow/tune_encoder.py
      python notebooks/stackoverflow/tune_encoder.py --duplicates titles.jsonl -s negatives=1 -o my
      lookuplab run retrieval_quality -p encoder=./my -p base_encoder=all-minilm-l6-v2

    Args:
        base: The sentence-transformers model to start from: a folder, or a name on the hub.
        duplicates: A JSON Lines file in which each line is a list of titles of one question. The
            name so-duplicates stands for a download, which is fetched.
        output: Folder to write; must not exist.
        setting: NAME=VALUE changes one of the settings above; repeatable.
    """
    steady()
    claim(output)
    if duplicates == "so-duplicates":
        duplicates = str(downloads.get(downloads.find(duplicates)))
    known = read_duplicates(Path(duplicates))
    done = tune(base, known, output, with_settings(Recipe(), setting), WORK)
    click.echo(
        "{pairs:,} pairs; loss on the held-out pairs: {validation_loss_before:.4f} before, "
        "{validation_loss:.4f} after step {taken_step}".format(**done)
    )
    click.echo(f"written: {output}")


if __name__ == "__main__":
    Group(commands={"tune": main}, context_settings=HELP).main(["tune", *sys.argv[1:]])
