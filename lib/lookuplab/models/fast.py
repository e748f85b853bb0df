"""Implements the fast path for local models on a CPU. It computes the same logits as the general
path (``decoding.Batch``) with less work.

    four prompts         the tokens that the model reads, packed into one sequence
    client("s3")         client("s3")
    client("s3").get(                .get(         only the part that differs from the prompt above
    client("sqs")                         "sqs")
    import os                                   import os

The general path pads all prompts of a batch to one length, and copies the whole key/value cache for
each new token. The fast path pads no prompts. It reads the prompts in sorted order. If a prompt
begins like the previous prompt, the keys and values of the shared beginning are copied, not
computed. The cache has spare columns for new tokens. When an answer ends, the cache of the last
answer moves into the free slot.

The matrix products are computed by oneDNN, on weights in oneDNN's own memory layout. On an AMD core
with AVX-512, oneDNN reaches 220 GFLOP/s from 64 tokens on; MKL, which PyTorch would use, reaches
100. oneDNN also computes the activation, addition or multiplication that follows a product.

The fast path supports only Llama's and GPT-2's architectures, in float32, with weights of at most
1 GiB, on x86-64. Every other model takes the general path. When a model is loaded,
``decoding.check_steps`` compares the logits of the fast path with the logits of plain forward
passes. To remove the fast path, delete this file and the uses of ``Fast`` and ``Packed`` in
``models.decoding``.
"""

import math
import os
import platform
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from lookuplab.models.completions import Work

KINDS = ("llama", "gpt2")  # supported architectures (``model_type``); each has a test
ACTIVATIONS = {  # Transformers' name of an activation -> oneDNN's name and variant
    "silu": ("swish", ""),
    "gelu_new": ("gelu", "tanh"),
    "gelu_pytorch_tanh": ("gelu", "tanh"),
}
BYTES = 2**30  # the largest size of a model's weights, because the fast path copies them
WEIGHT = (torch.nn.Parameter, torch.float32, "cpu")  # type, dtype and device of each weight
ROOM = 16  # number of columns by which the key/value cache grows
CHUNK = 512  # the largest number of tokens in a forward pass, unless a single prompt is longer
FEW = 4  # no rows are added to a product of at most this many rows (see ``Packed._forward``)
# oneDNN caches 64 compiled matrix products instead of 1,024, because each takes 0.7 MB of memory
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


class Layer(NamedTuple):
    """The functions that compute one decoder layer. All architectures use the same names. Each
    function takes rows (tokens, width). ``out`` and ``down`` also take a second tensor and add it
    to the result. ``up`` multiplies the result by a second tensor. GPT-2 has no ``up``.
    """

    norm: Callable[[torch.Tensor], torch.Tensor]
    project: Callable[[torch.Tensor], torch.Tensor]  # see ``_projection``
    out: Callable[..., torch.Tensor]
    second_norm: Callable[[torch.Tensor], torch.Tensor]
    gate: Callable[[torch.Tensor], torch.Tensor]
    up: Callable[..., torch.Tensor] | None
    down: Callable[..., torch.Tensor]


class Fast:
    """The weights of a Transformers model, ``module``, as the fast path needs them. Raises
    NotImplementedError for a module that the fast path does not support.
    """

    def __init__(self, module: PreTrainedModel) -> None:
        config = module.config
        rotation = getattr(config, "rope_parameters", None) or {}
        self.state = _state(module)
        if (
            not self.state
            or config.model_type not in KINDS
            # with these rotations, the logits of a prompt depend on the longest prompt in the
            # batch; ``decoding.check_steps`` would not notice, because its prompts are short
            or rotation.get("rope_type") in ("dynamic", "longrope")
            or sum(weight.nbytes for weight in module.parameters()) > BYTES
            or platform.machine() not in ("x86_64", "AMD64")
            or not torch.backends.mkldnn.is_available()
        ):
            raise NotImplementedError("the fast path does not support this model")
        decoder: Any = module.base_model
        self.embed: Any = module.get_input_embeddings()
        self.rotary = getattr(decoder, "rotary_emb", None)
        self.position_embedding = getattr(decoder, "wpe", None)
        self.heads: int = config.num_attention_heads
        self.shared_heads: int = getattr(config, "num_key_value_heads", self.heads)
        self.size: int = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        if self.rotary:
            self.layers = [self._like_llama(layer, config) for layer in decoder.layers]
        else:
            self.layers = [self._like_gpt2(layer, config) for layer in decoder.h]
        self.norm = _norm(decoder.norm if self.rotary else decoder.ln_f)
        self.head = _product(*_joined(module.get_output_embeddings()))

    def _like_llama(self, layer: Any, config: Any) -> Layer:
        attention, mlp = layer.self_attn, layer.mlp
        return Layer(
            _norm(layer.input_layernorm),
            self._projection(attention, attention.q_proj, attention.k_proj, attention.v_proj),
            _product(*_joined(attention.o_proj), "add"),
            _norm(layer.post_attention_layernorm),
            _product(*_joined(mlp.gate_proj), activation=config.hidden_act),
            _product(*_joined(mlp.up_proj), "mul"),
            _product(*_joined(mlp.down_proj), "add"),
        )

    def _like_gpt2(self, layer: Any, config: Any) -> Layer:
        return Layer(
            _norm(layer.ln_1),
            self._projection(layer.attn, layer.attn.c_attn),
            _product(*_joined(layer.attn.c_proj), "add"),
            _norm(layer.ln_2),
            _product(*_joined(layer.mlp.c_fc), activation=config.activation_function),
            None,
            _product(*_joined(layer.mlp.c_proj), "add"),
        )

    def _projection(self, attention: Any, *parts: Any) -> Callable[..., torch.Tensor]:
        """Return a function that computes the queries, keys and values of rows, concatenated in
        this order. The queries are already multiplied by the attention's scaling factor.

        A rotary model rotates pairs of numbers in each query and key. In Llama's layout, the first
        number of a pair is in the first half of the vector, and the second number in the second
        half. Here the two numbers are neighbours, so that PyTorch can rotate them as one complex
        number. Queries and keys are reordered in the same way, so their products do not change.
        """
        weight, bias = _joined(*parts)
        factor = torch.ones(len(weight))
        factor[: self.heads * self.size] = attention.scaling
        order = torch.arange(len(weight)).view(-1, self.size)
        if self.rotary:
            rotated = order[: self.heads + self.shared_heads]
            rotated[:] = rotated.unflatten(1, (2, -1)).transpose(1, 2).flatten(1)
        at = order.flatten()
        weight = (weight * factor[:, None])[at]
        return _product(weight, None if bias is None else (bias * factor)[at])

    def is_current(self, module: PreTrainedModel) -> bool:
        """Return whether the module is unchanged since its weights were copied."""
        return _state(module) == self.state


class Packed:
    """A batch of prompts with the same methods as ``decoding.Batch``. The prompts are not padded: a
    forward pass reads several prompts as one sequence of at most CHUNK tokens. A longer prompt gets
    a forward pass of its own.
    """

    spare = 0  # a finished row is dropped at once, because that copies only the last row
    apart = 0.001  # rounding in float32 can explain at most this relative difference between logits

    def __init__(self, parts: Fast, prompts: Sequence[Sequence[int]], work: Work) -> None:
        self.parts = parts
        self.work = work
        first = {ids: slot for slot, ids in enumerate(dict.fromkeys(map(tuple, prompts)))}
        self.sizes = list(map(len, first))  # the number of tokens that each slot has read
        self.columns = max(self.sizes) + ROOM
        # layer -> [keys (slots, heads, head size, columns), values (slots, heads, columns, head
        # size)]
        self.cache: dict[int, list[torch.Tensor]] = {}
        found: list[torch.Tensor] = []
        tokens: list[int] = []
        positions: list[int] = []
        # prompts in the next forward pass: (slot, number of tokens shared with the previous prompt,
        # attention mask); the mask is None if the two prompts share no token at the beginning
        self.reading: list[tuple[int, int, torch.Tensor | None]] = []
        # layer -> keys and values (tokens, heads, head size) of the prompt that was read last
        self.last: dict[int, Sequence[torch.Tensor]] = {}
        order = sorted(first)
        before: tuple[int, ...] = ()
        for ids in order:
            size = len(ids)
            # the last token is always read, because the next step needs the logits after it
            both = enumerate(zip(before, ids[:-1], strict=False))
            begun = next((at for at, (a, b) in both if a != b), min(len(before), size - 1))
            mask = torch.ones(size - begun, size, dtype=torch.bool).tril(begun) if begun else None
            if tokens and len(tokens) + size - begun > CHUNK:
                found.append(self._read(tokens, positions))
                self.reading, tokens, positions = [], [], []
            self.reading.append((first[ids], begun, mask))
            tokens += ids[begun:]
            positions += range(begun, size)
            before = ids
        found.append(self._read(tokens, positions))
        self.last.clear()
        self.logits = torch.cat(found)[torch.tensor([first[ids] for ids in order]).argsort()]
        if len(first) < len(prompts):  # equal prompts (several samples) were read once
            self.keep([first[tuple(ids)] for ids in prompts])

    def _shapes(self, slots: int) -> list[tuple[int, ...]]:
        """Return the shapes of the keys and values of one layer. Their memory is not cleared: a
        step masks the scores of columns without a token, and does not read the values in these
        columns.
        """
        heads, size = self.parts.shared_heads, self.parts.size
        return [(slots, heads, size, self.columns), (slots, heads, self.columns, size)]

    def _read(self, tokens: list[int], positions: list[int]) -> torch.Tensor:
        """Read the prompts in ``reading``. Return the logits (prompts, vocabulary) after them."""
        self.work.prompt_tokens += len(tokens)
        ends = torch.tensor([self.sizes[at] - since for at, since, _ in self.reading])
        return self._forward(tokens, positions, self._attend_prompts, ends.cumsum(0) - 1)

    def step(self, tokens: torch.Tensor) -> None:
        """Make the model read one more token in each slot. ``tokens`` has the shape (slots,)."""
        at = torch.tensor(self.sizes)
        self.sizes = [size + 1 for size in self.sizes]
        if max(self.sizes) > self.columns:
            self.columns += ROOM
            for both in self.cache.values():
                for i, shape in enumerate(self._shapes(len(at))):
                    wider = torch.empty(shape)
                    wider[:, :, : both[i].shape[2], : both[i].shape[3]] = both[i][: len(at)]
                    both[i] = wider  # frees the old keys before the values grow
        self._index_cache(at)
        self.logits = self._forward(tokens.tolist(), at.tolist(), self._attend_step, None)

    def _index_cache(self, at: torch.Tensor) -> None:
        """Compute the indices of the cache cells that a step reads and writes. The indices are the
        same for all layers. ``at`` (slots,) is the column of each slot's new token.
        """
        # query heads that share a key/value head are neighbours
        heads, each = self.parts.shared_heads, self.parts.heads // self.parts.shared_heads
        size, columns = self.parts.size, self.columns
        owners = torch.arange(len(at) * heads).view(-1, heads, 1)  # (slots, key/value heads, 1)
        dimensions = owners * size + torch.arange(size)
        self.key_cells = torch.arange(len(at)), at
        self.value_rows = (owners[..., 0] * columns + at[:, None]).flatten()
        # The attention scores of a query head are a weighted sum of rows of the key cache. There is
        # one row for each dimension, and its weight is the query's entry in that dimension.
        # ``key_rows`` has the indices of these rows.
        self.key_rows = dimensions.repeat_interleave(each, 1).view(-1, size)
        self.hidden = torch.arange(columns) > at[:, None, None]
        seen = ~self.hidden.expand(-1, heads * each, -1)
        # The output of a query head is a weighted sum of rows of the value cache. There is one row
        # for each token that the query may see, and the weights are the softmax of the scores.
        # ``seen_rows`` has the indices of these rows, and ``seen_bags`` says where in ``seen_rows``
        # the rows of each query head begin.
        rows = (owners * columns + torch.arange(columns)).repeat_interleave(each, 1)
        self.seen_cells = seen.flatten().nonzero()[:, 0]
        self.seen_rows = rows.flatten().index_select(0, self.seen_cells)
        self.seen_bags = functional.pad((at + 1).repeat_interleave(heads * each).cumsum(0), (1, -1))

    def keep(self, slots: list[int]) -> None:
        """Keep only these slots, in this order. A slot that occurs several times is copied. If the
        number of slots does not grow, slots that keep their index are not copied.
        """
        self.logits = self.logits[slots]
        moved = [(to, slot) for to, slot in enumerate(slots) if to != slot]
        if len(slots) > len(self.sizes):
            for layer, both in self.cache.items():
                self.cache[layer] = [each[slots] for each in both]
        elif moved:
            to, slot = torch.tensor(moved).T
            for both in self.cache.values():
                for each in both:
                    each.index_copy_(0, to, each.index_select(0, slot))
        self.sizes = [self.sizes[slot] for slot in slots]

    def _forward(
        self,
        tokens: list[int],
        positions: list[int],
        attend: Callable[..., torch.Tensor],
        kept: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return the logits (kept, vocabulary) after the packed tokens with the indices ``kept``,
        or, if ``kept`` is None, after every token.

        A matrix product has one row for each token. oneDNN compiles a product for each new number
        of rows, which takes as long as computing a product with 256 rows. A few rows are therefore
        added and later ignored, so that only a few different numbers of rows occur. From 32 rows
        on, less than a quarter is added.
        """
        self.work.passes += 1
        parts = self.parts
        count = len(tokens)
        spare = [0] * (-count % (1 << max(3, count.bit_length() - 3))) if count > FEW else []
        at = torch.tensor(positions + spare)
        state = parts.embed(torch.tensor(tokens + spare))
        if parts.position_embedding:
            state = state + parts.position_embedding(at)
        sizes = parts.heads, parts.shared_heads, parts.shared_heads
        if parts.rotary:
            cos, sin = parts.rotary(state, at[None])
            # the first half is enough, because the second half of ``cos`` and ``sin`` repeats it
            turn = torch.complex(cos, sin)[0, :count, None, : parts.size // 2]
        for number, layer in enumerate(parts.layers):
            asked = layer.project(layer.norm(state)).unflatten(1, (-1, parts.size))
            query, key, value = asked[:count].split(sizes, 1)
            if parts.rotary:
                pairs = (torch.view_as_complex(each.unflatten(2, (-1, 2))) for each in (query, key))
                query, key = (torch.view_as_real(each * turn).flatten(2) for each in pairs)
            seen = functional.pad(
                attend(number, query, key, value).flatten(1), (0, 0, 0, len(spare))
            )
            # after the last layer's attention, only the ``kept`` tokens matter for the result
            if kept is not None and number == len(parts.layers) - 1:
                state, seen = state[kept], seen[kept]
            state = layer.out(seen, state)
            inner = layer.second_norm(state)
            gate = layer.gate(inner)
            state = layer.down(layer.up(inner, gate) if layer.up else gate, state)
        logits: torch.Tensor = parts.head(parts.norm(state))
        return logits[: count if kept is None else None]

    def _attend_prompts(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> torch.Tensor:
        """Return the output (tokens, heads, head size) of one layer's attention in a forward pass
        that reads prompts. Store the prompts' keys and values in the layer's cache.
        """
        if layer not in self.cache:
            self.cache[layer] = list(map(torch.empty, self._shapes(len(self.sizes))))
            self.last[layer] = key, value
        start = 0
        seen = []
        for slot, begun, mask in self.reading:
            own = slice(start, start + self.sizes[slot] - begun)
            start = own.stop
            self.last[layer] = keys, values = [
                torch.cat((old[:begun], new[own]))
                for old, new in zip(self.last[layer], (key, value), strict=True)
            ]
            cached_keys, cached_values = (each[slot] for each in self.cache[layer])
            cached_keys[..., : len(keys)] = keys.permute(1, 2, 0)
            cached_values[:, : len(keys)] = values.transpose(0, 1)
            found = functional.scaled_dot_product_attention(
                query[None, own].transpose(1, 2),
                keys[None].transpose(1, 2),
                values[None].transpose(1, 2),
                mask,
                scale=1,
                is_causal=mask is None,
                enable_gqa=query.shape[1] != key.shape[1],
            )
            seen.append(found[0].transpose(0, 1))
        return torch.cat(seen)

    def _attend_step(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> torch.Tensor:
        """Return the output (slots, heads, head size) of one layer's attention for one new token in
        each slot. Store the token's key and value in the layer's cache.
        """
        keys, values = self.cache[layer]
        # (slots, columns, heads, head size); ``scatter_`` would take 1.4 times as long
        keys.permute(0, 3, 1, 2)[self.key_cells] = key
        values = values.view(-1, value.shape[2]).index_copy_(
            0, self.value_rows, value.flatten(0, 1)
        )
        rows = keys.view(-1, self.columns)
        weights = _sums(self.key_rows, rows, per_sample_weights=query.flatten(0, 1))
        weights = (
            weights.view(*query.shape[:2], -1).masked_fill_(self.hidden, -math.inf).softmax(-1)
        )
        weights = weights.view(-1).index_select(0, self.seen_cells)
        found = _sums(self.seen_rows, values, self.seen_bags, per_sample_weights=weights)
        return found.view_as(query)


# Computes weighted sums of rows. For one query per slot, ``embedding_bag`` reads the cache three
# times as fast as PyTorch's matrix products.
_sums = partial(functional.embedding_bag, mode="sum")


def _norm(part: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    if type(part) is torch.nn.LayerNorm:
        return part
    weight, eps = part.weight.detach(), part.variance_epsilon
    return partial(functional.rms_norm, normalized_shape=weight.shape, weight=weight, eps=eps)


def _joined(*parts: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the concatenated weights (outputs, inputs) and biases (outputs,) of linear layers."""
    if {type(part) for part in parts} not in ({torch.nn.Linear}, {Conv1D}):
        raise NotImplementedError("the fast path does not support this layer")
    weights = [part.weight.detach().T if type(part) is Conv1D else part.weight for part in parts]
    biases = [part.bias for part in parts if part.bias is not None]
    weight = torch.cat([each.detach() for each in weights]).contiguous()
    return weight, torch.cat(biases).detach() if biases else None


def _product(
    weight: torch.Tensor, bias: torch.Tensor | None, other: str = "", activation: str = ""
) -> Callable[..., torch.Tensor]:
    """Return a function that multiplies rows (tokens, inputs) by the weights (outputs, inputs) and
    adds the biases (outputs,). With ``other`` ("add" or "mul"), the function also takes a second
    tensor, and adds it to the outputs or multiplies the outputs by it. ``activation`` is the
    Transformers name of a function that is applied to the outputs.
    """
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, CHUNK)
    linear = torch.ops.mkldnn._linear_pointwise
    if other:
        return lambda rows, second: linear.binary(rows, second, packed, bias, other)
    kind, form = ACTIVATIONS[activation] if activation else ("none", "")
    return lambda rows: linear(rows, packed, bias, kind, [], form)


def _state(module: PreTrainedModel) -> list[tuple[int, int]]:
    """Return (address, version) for each weight of a module. If a weight changes, its address or
    its version changes, too. Return [] if a weight is not float32 in main memory. Also return [] if
    a submodule has hooks or a ``forward`` of its own (not its class's), because the fast path would
    ignore both.
    """
    for part in module.modules():
        if part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part):
            return []
    weights = [*module.parameters()]
    if {(type(each), each.dtype, each.device.type) for each in weights} != {WEIGHT}:
        return []
    return [(each.data_ptr(), each._version) for each in weights]
