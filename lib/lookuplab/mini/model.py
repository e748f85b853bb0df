"""The mini models: three sizes of one Llama-type architecture, and what makes them train fast on a CPU.

Two pieces replace the stock ones during training only (the saved model is a plain Llama): attention in blocks of rows,
which skips most of the masked half and runs as large bf16 products, and a cross entropy that never holds all logits at
once.
"""

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, LlamaConfig, LlamaForCausalLM

SIZES = {  # layers, width, heads, feed-forward width
    "small": (4, 96, 2, 256),
    "medium": (5, 144, 3, 384),
    "large": (6, 256, 4, 704),
}
BLOCK = 128  # rows of the attention matrix worked on at once: stays in the cache


def build(size: str, vocab_size: int, seed: int) -> LlamaForCausalLM:
    """A freshly initialised model of a named size, fp32, tied embeddings, 2,048 positions."""
    layers, width, heads, feed_forward = SIZES[size]
    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=vocab_size, hidden_size=width, intermediate_size=feed_forward, num_hidden_layers=layers,
        num_attention_heads=heads, head_dim=64, num_key_value_heads=heads, max_position_embeddings=2048,
        tie_word_embeddings=True, use_cache=False, bos_token_id=0, eos_token_id=0, pad_token_id=1,
        initializer_range=0.02,
    ))
    with torch.no_grad():  # residual branches start small: deeper stacks train faster
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.mul_((2 * layers) ** -0.5)
            layer.mlp.down_proj.weight.mul_((2 * layers) ** -0.5)
    return model


class BlockedAttention(torch.autograd.Function):
    """Causal softmax attention on [batch * heads, time, head_dim], row block by row block."""

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out, kept = torch.empty_like(q), []
        mask = torch.full((BLOCK, BLOCK), float("-inf"), dtype=q.dtype).triu(1)
        for begin in range(0, q.shape[1], BLOCK):
            end = min(begin + BLOCK, q.shape[1])
            scores = torch.bmm(q[:, begin:end], k[:, :end].transpose(1, 2))
            scores[:, :, begin:] += mask[:end - begin, :end - begin]
            kept.append(torch.softmax(scores, -1))
            out[:, begin:end] = torch.bmm(kept[-1], v[:, :end])
        ctx.save_for_backward(q, k, v, *kept)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, *kept = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for weights in kept:
            end = weights.shape[2]
            rows = slice(end - weights.shape[1], end)
            dv[:, :end] += torch.bmm(weights.transpose(1, 2), grad[:, rows])
            scores = torch.bmm(grad[:, rows], v[:, :end].transpose(1, 2))
            scores = torch._softmax_backward_data(scores, weights, -1, weights.dtype)
            dq[:, rows] = torch.bmm(scores, k[:, :end])
            dk[:, :end] += torch.bmm(scores.transpose(1, 2), q[:, rows])
        return dq, dk, dv


def blocked_attention(module, query: Tensor, key: Tensor, value: Tensor, mask, scaling: float,
                      **_) -> tuple[Tensor, None]:
    """``BlockedAttention`` under transformers' attention interface; [batch, heads, time, head_dim] in."""
    batch, heads, time, width = query.shape
    q, k, v = (t.to(value.dtype).reshape(batch * heads, time, width) for t in (query * scaling, key, value))
    return BlockedAttention.apply(q, k, v).view(batch, heads, time, width).transpose(1, 2).contiguous(), None


AttentionInterface.register("blocked", blocked_attention)
AttentionMaskInterface.register("blocked", lambda *_, **__: None)  # always causal, never padded on the left


class FusedCrossEntropy(torch.autograd.Function):
    """Mean cross entropy of ``hidden @ weight.T`` against ``targets``; gradients come from the same pass, by chunks."""

    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, targets: Tensor, chunk: int) -> Tensor:
        low, rows = weight.to(torch.bfloat16), hidden.to(torch.bfloat16)
        d_hidden, d_weight, total = torch.empty_like(rows), torch.zeros_like(weight), weight.new_zeros(())
        for begin in range(0, len(rows), chunk):
            part, target = rows[begin:begin + chunk], targets[begin:begin + chunk, None]
            logs = torch.log_softmax(part @ low.T, -1, dtype=torch.float32)
            total -= logs.gather(1, target).sum()
            d_logits = logs.exp_().to(torch.bfloat16)
            d_logits.scatter_add_(1, target, torch.full_like(target, -1, dtype=torch.bfloat16))
            d_hidden[begin:begin + chunk] = d_logits @ low
            d_weight += d_logits.T @ part
        ctx.save_for_backward(d_hidden.to(hidden.dtype).div_(len(rows)), d_weight.div_(len(rows)))
        return total / len(rows)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        d_hidden, d_weight = ctx.saved_tensors
        return d_hidden * grad, d_weight * grad, None, None


class Learner(nn.Module):
    """A causal model whose forward pass is its training loss (so that a distributed wrapper sees one module)."""

    def __init__(self, model: LlamaForCausalLM):
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean loss in nats over the targets that are not -100; inputs and targets int64 [rows, length]."""
        hidden = self.model.model(inputs, use_cache=False).last_hidden_state
        real = targets.reshape(-1) >= 0
        return FusedCrossEntropy.apply(hidden.reshape(-1, hidden.shape[-1])[real], self.model.lm_head.weight,
                                       targets.reshape(-1)[real], 256 if hidden.device.type == "cpu" else 8192)
