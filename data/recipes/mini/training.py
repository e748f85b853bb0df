"""Pre-trains every mini model: the code models and ToolGen's three families.

One training loop serves all of them. It runs whole epochs from a seed, on a CPU or a GPU, and a
killed run resumes from its last checkpoint. A training example is a pair (read, written) of token
ids; the model learns only the written part.

Fine-tuning has another loop (``lookuplab.models.training``, Transformers' Trainer). The loop here
differs in four ways. Batches have about equally many tokens, not equally many rows. Documents are
packed. Muon trains the matrices and AdamW the other weights, under one schedule. Gradients are
clipped after autocast. The Trainer does none of this, so it could not reproduce the committed
models.
"""

import hashlib
import json
import os
import shutil
import time
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence
from torch.optim import AdamW, Muon, Optimizer
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from lookuplab.paths import make_folder, replacing
from lookuplab.results.provenance import processor
from lookuplab.work import watched
from recipes import tables

ARCHITECTURES = tables("mini/architectures.yaml")
VOCABULARY = 4096
EOS, PAD, IGNORED = 0, 1, -100  # ids of tokens, and the label of a token that is not learned
SHORT, LONG = 512, 2048  # the most tokens in a short and in a long packed row
# at least this share of an epoch's tokens is in long rows, so that late positions are trained, too
LONG_SHARE = 0.08
LOG_EVERY = 20  # steps between two lines of the log
PIECES = (
    r"[\r\n]+[ \t]*"  # line breaks with the indentation that follows
    r"|[ _]?\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+"  # word, _word, Word, _Word, with a space before it
    r"|[ _]?\p{Lu}+(?!\p{Ll})"  # ACRONYM
    r"|[ _]?\p{Lu}"
    r"|\p{N}"  # digits one by one
    r"| ?[^\s\p{L}\p{N}_]+"  # runs of punctuation
    r"|_+(?=_\p{L})|_+"  # __init__: the underscore before a letter belongs to the word
    r"|[^\S\r\n]+(?= \S)|[^\S\r\n]+"
)
MINI_CARD = """---
license: apache-2.0
library_name: transformers
tags: [code, lookuplab]
---
# {name}

Trained from scratch by its recipe (`data/recipes/mini`), in fp16. {about}

The model knows only what it was trained on; it is no general code assistant. Read the code that it writes before you run it.
`log.csv` has the losses, in nats per token. `tokens` is the number of tokens of an epoch, and `sha256` is their hash:

```json
{facts}
```
"""  # noqa: E501  # the committed cards have these lines

TrainingExample = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True)
class PretrainingRecipe:
    """Everything that determines the trained weights, besides the examples and the tokenizer.

    Muon, with ``muon_rate``, trains the matrices between embedding and head. AdamW, with
    ``adam_rate``, trains the rest. If ``packed``, several documents share a row.
    ``attention_rate`` multiplies the learning rate of the query and key matrices of T5.
    """

    model: str
    epochs: int = 1
    seed: int = 0
    packed: bool = False
    batch_tokens: int = 8192
    muon_rate: float = 0.02
    adam_rate: float = 0.005
    attention_rate: float = 1.0
    warmup: float = 0.01  # share of the steps
    cooldown: float = 0.6  # share of the steps in which the rate falls linearly to zero
    weight_decay: float = 0.02
    clip: float = 1.0


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer whose tokens never span two parts of an identifier. For
    every text, ``decode(encode(text)) == text``.

    Names are cut at underscores and at changes of case, and each digit is one token. A small model
    that copies ``IdentityPoolId`` from documentation then handles few tokens, which are frequent
    and meaningful.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|endoftext|>", "<|pad|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=20,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|endoftext|>",
        bos_token="<|endoftext|>",
        pad_token="<|pad|>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=LONG,
    )


def build(name: str, vocabulary: int, seed: int) -> PreTrainedModel:
    """Return a model of ``architectures.yaml`` in fp32, with random initial weights."""
    torch.manual_seed(seed)
    ids = {"bos_token_id": EOS, "eos_token_id": EOS, "pad_token_id": PAD, "vocab_size": vocabulary}
    config = AutoConfig.for_model(**ARCHITECTURES[name] | ids, tie_word_embeddings=True)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    model = kind.from_config(config)
    # Llama's residual branches start small, because deeper models then train faster
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.mul_((2 * config.num_hidden_layers) ** -0.5)
    return model


def optimizers(model: PreTrainedModel, recipe: PretrainingRecipe) -> list[Optimizer]:
    """Return the two optimizers of a model, Muon and AdamW. Each group of parameters has a
    ``rate``, which the training loop multiplies by the factor of the schedule.
    """
    inner = []
    others = []
    for name, weight in model.named_parameters():
        # AdamW trains the embedding, too: it is a matrix, but it is also the weights of the output
        # layer, and Muon is only for the layers between input and output
        if weight.ndim != 2 or weight is model.get_input_embeddings().weight:
            others.append(weight)
        else:
            slow = name.endswith(("Attention.q.weight", "Attention.k.weight"))
            rate = recipe.muon_rate * (recipe.attention_rate if slow else 1)
            inner.append({"params": [weight], "rate": rate})
    muon = Muon(inner, weight_decay=recipe.weight_decay, momentum=0.95)
    rest = [{"params": others, "rate": recipe.adam_rate}]
    return [muon, AdamW(rest, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0, fused=True)]


def rate(step: int, steps: int, recipe: PretrainingRecipe) -> float:
    """Return the factor on the learning rates at a step, from 0 to 1. It rises linearly during
    warm-up, stays at 1, and falls linearly to zero during cool-down.
    """
    up, down = max(1, recipe.warmup * steps), max(1, recipe.cooldown * steps)
    return min(1.0, (step + 1) / up, (steps - step) / down)


def batches(sizes: np.ndarray, recipe: PretrainingRecipe) -> list[list[list[int]]]:
    """Return the batches of all steps: for each step a list of rows, and for each row the indices
    of its examples. Each example occurs once per epoch.

    A batch has rows of similar length, and at most ``batch_tokens`` tokens including padding.
    ``sizes`` are the numbers of tokens of the examples.
    """
    plan = []
    for epoch in range(recipe.epochs):
        random = np.random.default_rng((recipe.seed, epoch))
        rows = packed(sizes, random) if recipe.packed else [[n] for n in range(len(sizes))]
        totals = np.array([sizes[row].sum() for row in rows])
        filled: list[list[list[int]]] = []
        longest = 0
        # longest first, plus a random term, so that the batches differ from epoch to epoch
        for number in np.argsort(-(totals + random.uniform(0, 8, len(rows)))):
            if not filled or (len(filled[-1]) + 1) * longest > recipe.batch_tokens:
                filled.append([])
                longest = totals[number]
            filled[-1].append(rows[number])
        plan += [filled[number] for number in random.permutation(len(filled))]
    return plan


def packed(sizes: np.ndarray, random: np.random.Generator) -> list[list[int]]:
    """Return rows of documents' indices. Most documents are packed into short rows, of at most
    SHORT tokens. Documents with more than SHORT tokens are packed into long rows, of at most LONG
    tokens. If the long rows have less than the share LONG_SHARE of all tokens, random shorter
    documents are added to them.

    No document is cut, so that documentation and the call below it stay in one context.
    """
    order = random.permutation(len(sizes))
    long = sizes[order] > SHORT
    lacking = LONG_SHARE * sizes.sum() - sizes[order][long].sum()
    long |= np.cumsum(np.where(long, 0, sizes[order])) <= lacking
    return fitted(order[~long], sizes, SHORT) + fitted(order[long], sizes, LONG)


def fitted(numbers: Iterable[int], sizes: np.ndarray, capacity: int) -> list[list[int]]:
    """Return rows of the documents ``numbers`` (indices into ``sizes``). The sizes in a row sum to
    at most ``capacity``. The method is best-fit decreasing.
    """
    rows: list[list[int]] = []
    room: list[tuple[int, int]] = []  # (free tokens, row), sorted
    for number in sorted(numbers, key=lambda number: -sizes[number]):
        at = bisect_left(room, (sizes[number], -1))  # the fullest row that the document fits into
        if at == len(room):
            room.append((capacity, len(rows)))
            rows.append([])
        free, row = room.pop(at)
        rows[row].append(number)
        insort(room, (free - sizes[number], row))
    return rows


def tensors(
    rows: Sequence[Sequence[TrainingExample]], encoder_decoder: bool
) -> dict[str, torch.Tensor]:
    """Return a batch as the tensors that Transformers' models take, padded on the right. A token
    that is only read has the label IGNORED.
    """
    inputs = []
    labels = []
    for row in rows:
        if not encoder_decoder:  # a decoder also reads the text that it writes
            row = [([*read, *written], [*[IGNORED] * len(read), *written]) for read, written in row]
        texts, learned = zip(*row, strict=True)
        inputs.append(torch.tensor([*chain(*texts)]))
        labels.append(torch.tensor([*chain(*learned)]))
    ids = pad_sequence(inputs, batch_first=True, padding_value=PAD)
    wanted = pad_sequence(labels, batch_first=True, padding_value=IGNORED)
    batch = {"input_ids": ids, "labels": wanted}
    return batch | {"attention_mask": ids != PAD} if encoder_decoder else batch


def pretrain(
    examples: Sequence[TrainingExample],
    tokenizer: PreTrainedTokenizerFast,
    recipe: PretrainingRecipe,
    work: Path,
    out: Path,
    about: str,
    save_every: int = 100,
) -> None:
    """Train a model to the end, and write it in fp16 with its card to the folder ``out``.

    The folder ``work`` contains the checkpoint and log.csv. The checkpoint is saved every
    ``save_every`` steps. The log has the mean loss of every LOG_EVERY steps in nats per token.
    """
    # On a CPU, oneDNN keeps a program for each shape of a batch: 10 GB in 2,000 steps.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = build(recipe.model, len(tokenizer), recipe.seed)
    model.to(device)  # type: ignore[arg-type]
    opts = optimizers(model, recipe)
    parts: list[Any] = [model, *opts]
    # -1 marks where ``read`` and ``written`` end, so that the hash of the examples depends on
    # where each example is divided
    tokens = [np.array([*read, -1, *written, -1], np.int32) for read, written in examples]
    sizes = np.array([len(sequence) - 2 for sequence in tokens])
    plan = batches(sizes, recipe)
    facts = {
        "recipe": asdict(recipe),
        "examples": len(examples),
        "tokens": int(sizes.sum()),
        "sha256": hashlib.sha256(np.concatenate(tokens).tobytes()).hexdigest(),
        "steps": len(plan),
        "parameters": model.num_parameters(),
    }
    file = make_folder(work) / "checkpoint.pt"
    state: dict[str, Any] = {"facts": facts, "step": 0, "seconds": 0.0, "log": []}
    if file.exists() and (saved := torch.load(file))["facts"] == facts:
        state = saved
        for part, one in zip(parts, state["parts"], strict=True):
            part.load_state_dict(one)
    seen = np.cumsum([sum(sizes[row].sum() for row in rows) for rows in plan])
    losses = []
    began = time.monotonic() - state["seconds"]
    for step in watched(range(state["step"], len(plan)), f"train {recipe.model}", "steps"):
        shown = [[examples[n] for n in row] for row in plan[step]]
        batch = tensors(shown, model.config.is_encoder_decoder)
        inputs = {name: one.to(device) for name, one in batch.items()}
        with torch.autocast(device, torch.bfloat16):
            loss = model(**inputs, use_cache=False).loss
        loss.backward()
        clip_grad_norm_(model.parameters(), recipe.clip)
        for opt in opts:
            for group in opt.param_groups:
                group["lr"] = group["rate"] * rate(step, len(plan), recipe)
            opt.step()
            opt.zero_grad()
        losses.append(loss.detach())
        done = step + 1
        last = done == len(plan)
        state |= {"step": done, "seconds": round(time.monotonic() - began, 1)}
        if last or done % LOG_EVERY == 0:
            mean = torch.stack(losses).mean().item()
            losses = []
            state["log"].append(
                {
                    "step": done,
                    "tokens": int(seen[step]),
                    "loss": round(mean, 4),
                    "seconds": state["seconds"],
                }
            )
        if last or done % save_every == 0:
            pd.DataFrame(state["log"]).to_csv(work / "log.csv", index=False)
            state["parts"] = [part.state_dict() for part in parts]
            with replacing(file) as partial:
                torch.save(state, partial)
    facts |= {"seconds": state["seconds"], "device": f"{device} ({processor()})"}
    part = out.with_name(f".{out.name}.partial")
    shutil.rmtree(part, ignore_errors=True)  # an earlier run may have been killed here
    model.to("cpu", torch.float16).save_pretrained(part)  # type: ignore[arg-type]
    tokenizer.save_pretrained(part)
    shutil.copyfile(work / "log.csv", part / "log.csv")
    text = json.dumps(facts, indent=1)
    (part / "card.json").write_text(text + "\n", encoding="utf-8")
    card = MINI_CARD.format(name=out.name, about=about, facts=text)
    (part / "README.md").write_text(card, encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)  # at the end, so that a folder ``out`` is always complete
