"""Pre-training of every mini model: the three code models, and ToolGen's three families.

One loop for all: whole epochs, seeded, on a CPU or through accelerate on GPUs; a killed run goes on from its last
checkpoint. A training example is (read, written): token ids of which only the second part is learned.
"""

import hashlib
import json
import os
import shutil
import time
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from accelerate import Accelerator, PartialState
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.utils.rnn import pad_sequence
from torch.optim import AdamW, Muon
from tqdm import tqdm
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from lookuplab.provenance import processor

LLAMAS = {  # layers, width, heads, feed-forward width, positions
    "small": (4, 96, 2, 256, 2048),
    "medium": (5, 144, 3, 384, 2048),
    "large": (6, 256, 4, 704, 2048),
    "llama": (5, 192, 3, 512, 512),
}
VOCABULARY = 4096
EOS, PAD, IGNORED = 0, 1, -100
SHORT, LONG = 512, 2048  # tokens of a packed row
LONG_SHARE = 0.08  # of an epoch's tokens at least this part is in long rows, so that late positions are trained
PIECES = "|".join(
    [
        r"[\r\n]+[ \t]*",  # line breaks with the indentation that follows
        r"[ _]?\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+",  # word, _word, Word, _Word, with its space
        r"[ _]?\p{Lu}+(?!\p{Ll})",  # ACRONYM
        r"[ _]?\p{Lu}",
        r"\p{N}",  # digits one by one
        r" ?[^\s\p{L}\p{N}_]+",  # runs of punctuation
        r"_+(?=_\p{L})|_+",  # __init__: the underscore before a letter belongs to the word
        r"[^\S\r\n]+(?= \S)|[^\S\r\n]+",
    ]
)
CARD = """---
license: apache-2.0
library_name: transformers
tags: [code, lookuplab]
---
# {name}

A model of {parameters:,} parameters, fp16, trained from scratch by `lookuplab train`.

{about}

It read {examples:,} documents or functions, {tokens:,} tokens an epoch (sha256 `{sha256}`), in {steps:,} steps
and {seconds:.0f} seconds on {device} ({processor}, {processes} process(es)). Recipe: `{recipe}`; losses: `log.csv`.

It knows what it was trained on and is no general code assistant; run nothing of it unread. Licence: Apache-2.0.
"""

Example = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights, besides examples and tokenizer.

    Muon trains the matrices between embedding and head, AdamW the rest. ``packed``: several documents share a row.
    ``attention_rate`` is a factor on the rate of T5's queries and keys.
    """

    model: str
    epochs: int = 1
    seed: int = 0
    packed: bool = False
    batch_tokens: int = 8192
    muon_rate: float = 0.02
    adam_rate: float = 0.005
    attention_rate: float = 1.0
    warmup: float = 0.01  # part of the steps
    cooldown: float = 0.6  # part of the steps, linear to zero
    weight_decay: float = 0.02
    clip: float = 1.0


def train_tokenizer(texts: Iterable[str], vocabulary: int = VOCABULARY) -> PreTrainedTokenizerFast:
    """Byte-level BPE whose pieces are the parts of identifiers; ``decode(encode(text)) == text`` for every text.

    Names are cut at underscores and changes of case, digits stand alone: a small model that copies
    ``IdentityPoolId`` out of documentation then handles few, frequent and meaningful pieces.
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
        vocab_size=vocabulary,
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
    """A freshly initialised model, fp32, embeddings tied: "gpt" (GPT-2), "t5", or one of LLAMAS."""
    torch.manual_seed(seed)
    ids = {"bos_token_id": EOS, "eos_token_id": EOS, "pad_token_id": PAD, "vocab_size": vocabulary}
    ids["tie_word_embeddings"] = True
    if name == "gpt":
        shape = {"n_positions": 512, "n_embd": 192, "n_layer": 4, "n_head": 3}
        plain = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        return GPT2LMHeadModel(
            GPT2Config(activation_function="gelu_pytorch_tanh", **shape, **plain, **ids)
        )
    if name == "t5":
        shape = {"d_model": 192, "d_kv": 64, "num_heads": 3, "d_ff": 512}
        layers = {"num_layers": 2, "num_decoder_layers": 3, "dropout_rate": 0.0}
        return T5ForConditionalGeneration(
            T5Config(decoder_start_token_id=PAD, **shape, **layers, **ids)
        )
    layers, width, heads, feed_forward, positions = LLAMAS[name]
    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=width,
            intermediate_size=feed_forward,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            head_dim=64,
            max_position_embeddings=positions,
            **ids,
        )
    )
    with torch.no_grad():  # residual branches start small: deeper stacks train faster
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.mul_((2 * layers) ** -0.5)
            layer.mlp.down_proj.weight.mul_((2 * layers) ** -0.5)
    return model


def optimizers(model: PreTrainedModel, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon and AdamW; a group's ``rate`` is what the schedule scales."""
    slow, hidden, rest = [], [], []
    embedding = model.get_input_embeddings().weight  # and the head, which is tied to it
    for name, weight in model.named_parameters():
        of_attention = name.endswith(("Attention.q.weight", "Attention.k.weight"))
        inner = weight.ndim == 2 and weight is not embedding and "embed" not in name
        (rest if not inner else slow if of_attention else hidden).append(weight)
    groups = [{"params": hidden, "rate": recipe.muon_rate}]
    if slow:
        groups.append({"params": slow, "rate": recipe.muon_rate * recipe.attention_rate})
    muon = Muon(groups, lr=recipe.muon_rate, weight_decay=recipe.weight_decay, momentum=0.95)
    others = [{"params": rest, "rate": recipe.adam_rate}]
    return [muon, AdamW(others, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0, fused=True)]


def rate(step: int, steps: int, recipe: Recipe) -> float:
    """The factor on the learning rates: warm-up, constant, linear cool-down to zero."""
    up, down = max(1, recipe.warmup * steps), max(1, recipe.cooldown * steps)
    return min(1.0, (step + 1) / up, (steps - step) / down)


def batches(sizes: np.ndarray, recipe: Recipe) -> list[list[list[int]]]:
    """Every step's batch: rows of numbers of examples, each example once an epoch.

    Rows of similar length come together, ``batch_tokens`` at most, padding included.
    """
    plan = []
    for epoch in range(recipe.epochs):
        random = np.random.default_rng((recipe.seed, epoch))
        rows = packed(sizes, random) if recipe.packed else [[n] for n in range(len(sizes))]
        totals = np.array([sizes[row].sum() for row in rows])
        made: list[list[list[int]]] = []
        longest = 0
        for number in np.argsort(-(totals + random.uniform(0, 8, len(rows)))):
            if not made or (len(made[-1]) + 1) * longest > recipe.batch_tokens:
                made.append([])
                longest = totals[number]
            made[-1].append(rows[number])
        plan += [made[number] for number in random.permutation(len(made))]
    return plan


def packed(sizes: np.ndarray, random: np.random.Generator) -> list[list[int]]:
    """Documents packed into rows of SHORT tokens, those that are longer and some others into rows of LONG.

    None is cut, so that documentation and the call below it stay in one context.
    """
    order = random.permutation(len(sizes))
    long = sizes[order] > SHORT
    lacking = LONG_SHARE * sizes.sum() - sizes[order][long].sum()
    long |= np.cumsum(np.where(long, 0, sizes[order])) <= lacking
    return fitted(order[~long], sizes, SHORT) + fitted(order[long], sizes, LONG)


def fitted(numbers: Iterable[int], sizes: np.ndarray, capacity: int) -> list[list[int]]:
    """Best-fit decreasing: the numbers in rows whose ``sizes`` sum to ``capacity`` at most."""
    rows: list[list[int]] = []
    room: list[tuple[int, int]] = []  # (free tokens, row), sorted
    for number in sorted(numbers, key=lambda number: -sizes[number]):
        at = bisect_left(room, (sizes[number], -1))
        free, row = room.pop(at) if at < len(room) else (capacity, len(rows))
        if row == len(rows):
            rows.append([])
        rows[row].append(number)
        insort(room, (free - sizes[number], row))
    return rows


def tensors(rows: Sequence[Sequence[Example]], encoder_decoder: bool) -> dict[str, torch.Tensor]:
    """A batch as Transformers' models take it, padded on the right."""
    if encoder_decoder:
        pairs = [([*read], [*written]) for row in rows for read, written in row]
    else:
        pairs = [
            (
                [token for read, written in row for token in (*read, *written)],
                [token for read, written in row for token in (*[IGNORED] * len(read), *written)],
            )
            for row in rows
        ]
    inputs, labels = (
        pad_sequence([torch.tensor(one) for one in part], batch_first=True, padding_value=value)
        for part, value in zip(zip(*pairs, strict=True), (PAD, IGNORED), strict=True)
    )
    mask = {"attention_mask": inputs != PAD} if encoder_decoder else {}
    return {"input_ids": inputs, "labels": labels, **mask}


def train(
    examples: Sequence[Example],
    recipe: Recipe,
    vocabulary: int,
    work: Path,
    save_every: float = 120.0,
    stop_at: int | None = None,
) -> tuple[PreTrainedModel, dict]:
    """Train to the end (or to step ``stop_at``) and return (model, facts for the card).

    ``work`` holds the checkpoint, saved every ``save_every`` seconds, and log.csv: the mean loss in nats a token
    of 20 steps.
    """
    accelerator = Accelerator(mixed_precision="bf16")
    main, device = accelerator.is_main_process, accelerator.device
    model = build(recipe.model, vocabulary, recipe.seed)
    opts = optimizers(model, recipe)
    sizes = np.array([len(read) + len(written) for read, written in examples])
    plan = batches(sizes, recipe)
    facts = {
        "examples": len(examples),
        "tokens": int(sizes.sum()),
        "sha256": fingerprint(examples),
        "steps": len(plan),
        "parameters": model.num_parameters(),
    }
    identity = {**asdict(recipe), **facts, "vocabulary": vocabulary}
    work.mkdir(parents=True, exist_ok=True)
    file, state = work / "checkpoint.pt", {"step": 0, "seconds": 0.0, "log": []}
    if file.exists() and (saved := torch.load(file))["identity"] == identity:
        state = saved
        model.load_state_dict(state["model"])
        for opt, one in zip(opts, state["optimizers"], strict=True):
            opt.load_state_dict(one)
    learner, *opts = accelerator.prepare(model, *opts)
    seen = np.cumsum([sum(sizes[row].sum() for row in rows) for rows in plan])
    log, losses, began = state["log"], [], time.monotonic() - state["seconds"]
    kept = time.monotonic()
    numbers = range(state["step"], len(plan) if stop_at is None else stop_at)
    for step in tqdm(numbers, f"train {recipe.model}", mininterval=5, disable=not main):
        rows = plan[step][accelerator.process_index :: accelerator.num_processes] or plan[step][:1]
        batch = tensors(
            [[examples[n] for n in row] for row in rows], model.config.is_encoder_decoder
        )
        inputs = {name: one.to(device) for name, one in batch.items()}
        loss = learner(**inputs, use_cache=False).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(learner.parameters(), recipe.clip)
        for opt in opts:
            for group in opt.param_groups:
                group["lr"] = group["rate"] * rate(step, len(plan), recipe)
            opt.step()
            opt.zero_grad()
        losses.append(loss.detach())
        last, seconds = step + 1 == len(plan), round(time.monotonic() - began, 1)
        if last or (step + 1) % 20 == 0:
            mean = round(torch.stack(losses).mean().item(), 4)
            line = {"step": step + 1, "tokens": seen[step], "loss": mean, "seconds": seconds}
            log.append({name: float(value) for name, value in line.items()})
            losses = []
        if main and (last or time.monotonic() - kept >= save_every):
            pd.DataFrame(log).to_csv(work / "log.csv", index=False)
            state = {"identity": identity, "step": step + 1, "seconds": seconds, "log": log}
            state |= {"model": model.state_dict(), "optimizers": [opt.state_dict() for opt in opts]}
            torch.save(state, file.with_suffix(".part"))
            os.replace(file.with_suffix(".part"), file)
            kept = time.monotonic()
    facts |= {"seconds": round(time.monotonic() - began, 1), "device": str(device)}
    facts |= {"processor": processor(), "processes": accelerator.num_processes}
    return accelerator.unwrap_model(learner), facts


def fingerprint(examples: Sequence[Example]) -> str:
    """sha256 over the tokens of all examples, in order."""
    digest = hashlib.sha256()
    for read, written in examples:
        digest.update(np.array([*read, -1, *written, -1], dtype=np.int32).tobytes())
    return digest.hexdigest()


def pretrain(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerFast,
    recipe: Recipe,
    work: Path,
    out: Path,
    about: str,
) -> dict:
    """Train and write ``out``, a plain fp16 folder with its card; returns the card's facts."""
    model, facts = train(examples, recipe, len(tokenizer), work)
    if PartialState().is_main_process:
        model.to("cpu", torch.float16).save_pretrained(out)
        tokenizer.save_pretrained(out)
        shutil.copyfile(work / "log.csv", out / "log.csv")
        card = {"recipe": asdict(recipe), "training": facts}
        (out / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        text = CARD.format(name=out.name, about=about, recipe=json.dumps(asdict(recipe)), **facts)
        (out / "README.md").write_text(text, encoding="utf-8")
    return facts
