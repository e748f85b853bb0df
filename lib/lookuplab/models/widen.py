"""A GPT-2 of a larger one's shape that computes what a small one does: what decoding costs at a published model's size,
measured without that model."""

import torch
from torch import nn
from transformers import GPT2LMHeadModel

from lookuplab.errors import UserError

OUTPUTS = ("attn.c_proj", "mlp.c_proj")


@torch.no_grad()
def widened(model: GPT2LMHeadModel, width: int, layers: int) -> GPT2LMHeadModel:
    """The function of ``model``, in ``width`` hidden units and ``layers`` layers; the vocabulary stays.

    Every unit and every head is there ``times`` times: a layer norm of repeated units is the repeated layer norm, and
    weights divided by ``times`` sum to the same. Layers behind the model's own add nothing. Logits are equal but for
    rounding. UserError for another architecture, and for a width that is no multiple of the model's.
    """
    config = model.config
    if not isinstance(model, GPT2LMHeadModel) or width % config.n_embd or layers < config.n_layer:
        raise UserError(f"only a GPT-2 can be widened, to a multiple of its width and no fewer layers; this is a "
                        f"{type(model).__name__}, asked for {width} units and {layers} layers")
    times = width // config.n_embd
    larger = type(config)(**config.to_dict() | {"n_embd": width, "n_layer": layers, "n_head": config.n_head * times})
    wide = GPT2LMHeadModel(larger).to(dtype=model.dtype, device=model.device).eval()
    for table, small in ((wide.transformer.wte, model.transformer.wte), (wide.transformer.wpe, model.transformer.wpe)):
        table.weight.copy_(small.weight.repeat(1, times))
    for block, small in zip(wide.transformer.h, model.transformer.h, strict=False):
        for name in ("ln_1", "ln_2"):
            _repeat(block.get_submodule(name), small.get_submodule(name), times)
        _repeat(block.attn.c_attn, small.attn.c_attn, times, parts=3)
        for name in ("mlp.c_fc", *OUTPUTS):
            _repeat(block.get_submodule(name), small.get_submodule(name), times)
    for block in wide.transformer.h[config.n_layer:]:
        for name in OUTPUTS:
            for parameter in block.get_submodule(name).parameters():
                parameter.zero_()
    _repeat(wide.transformer.ln_f, model.transformer.ln_f, times)
    for parameter in wide.transformer.ln_f.parameters():  # the head, tied to the embeddings, sums over all units
        parameter.div_(times)
    return wide


def _repeat(wide: nn.Module, small: nn.Module, times: int, parts: int = 1) -> None:
    """Weights of shape (in, out) or (units,), ``out`` made of ``parts`` (queries, keys, values), each repeated."""
    if small.weight.ndim == 2:
        pieces = [piece.repeat(times, times) / times for piece in small.weight.chunk(parts, dim=1)]
        wide.weight.copy_(torch.cat(pieces, dim=1))
    else:
        wide.weight.copy_(small.weight.repeat(times))
    wide.bias.copy_(torch.cat([piece.repeat(times) for piece in small.bias.chunk(parts)]))
