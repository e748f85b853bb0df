"""What a checkpoint needs, told from its configuration and the heads of its files: no torch, no weights in memory."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

from lookuplab.errors import UserError
from lookuplab.models.adapters import base_of, is_adapter

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_HEADER = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}  # dtypes in the words of safetensors
MARGIN = 1.1  # the device's own context, kernels' scratch space and what the allocator cannot reuse


@dataclass(frozen=True)
class ModelFacts:
    """One checkpoint. ``dtype`` is that of its weights, which a GPU loads as they are; ``head_width`` of one key or
    value head; ``hidden`` and ``inner`` of a token between and inside the blocks; ``context`` in tokens.
    """

    architecture: str
    parameters: int
    dtype: str
    layers: int
    kv_heads: int
    head_width: int
    hidden: int
    inner: int
    context: int

    @property
    def weights(self) -> float:
        """Of the weights alone, in GB (10^9 bytes)."""
        return self.parameters * BYTES.get(self.dtype, 4) / 1e9

    def gigabytes(self, rows: int, prompt: int, new: int) -> float:
        """GPU memory (10^9 bytes) for ``rows`` prompts of ``prompt`` tokens that get ``new`` more each.

        Weights; keys and values of all tokens; the activations of one block while it reads all prompts (three tensors
        of the inner width and two of the hidden one); a tenth on top. Prompts are cut at the context.
        """
        prompt, total = min(prompt, self.context), min(prompt + new, self.context)
        cache = 2 * self.layers * self.kv_heads * self.head_width * rows * total
        activations = rows * prompt * (3 * self.inner + 2 * self.hidden)
        return MARGIN * (self.weights + (cache + activations) * BYTES.get(self.dtype, 4) / 1e9)


def facts_of(folder: Path) -> ModelFacts | None:
    """The facts of a checkpoint's folder, for an adapter its base's; None where the files do not tell them all."""
    try:
        if is_adapter(folder):
            return facts_of(Path(base_of(folder)[0]))
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        tensors = [tensor for file in sorted(folder.glob("*.safetensors")) for tensor in _tensors(file)]
        dtype = Counter(tensor["dtype"] for tensor in tensors).most_common(1)[0][0]
        heads = _first(config, "num_attention_heads", "n_head", "num_heads", "attention_heads")
        hidden = _first(config, "hidden_size", "n_embd", "d_model")
        return ModelFacts(
            architecture=config["architectures"][0], parameters=sum(prod(tensor["shape"]) for tensor in tensors),
            dtype=_HEADER.get(dtype, dtype), layers=_first(config, "num_hidden_layers", "n_layer", "num_layers"),
            kv_heads=1 if config.get("multi_query") else config.get("num_key_value_heads") or heads,
            head_width=_first({**config, "shared": hidden // heads}, "head_dim", "d_kv", "shared"), hidden=hidden,
            inner=_first({**config, "usual": 4 * hidden}, "intermediate_size", "n_inner", "d_ff", "ffn_dim", "usual"),
            context=_first({**config, "unlimited": 10**9}, "max_position_embeddings", "n_positions", "unlimited"))
    except (UserError, OSError, ValueError, KeyError, IndexError, TypeError):  # another kind, or half of one
        return None


def _first(config: dict, *names: str) -> int:
    """The first of these settings that is given: architectures name the same thing differently. KeyError for none."""
    given = [config[name] for name in names if config.get(name) is not None]
    if not given:
        raise KeyError(names[0])
    return int(given[0])


def _tensors(file: Path) -> Iterator[dict]:
    """dtype and shape of every tensor in a safetensors file: its head is JSON after eight bytes with the length."""
    with open(file, "rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        head = json.loads(stream.read(size))
    return (tensor for name, tensor in head.items() if name != "__metadata__")
