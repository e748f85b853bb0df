"""Simulates two GPUs (*cards*): all numbers are computed on the CPU, and each tensor has the label
of a card.

An operation that PyTorch would refuse, because its tensors are on different devices, is refused
here, too. PyTorch's own FakeTensorMode would not do: it computes no numbers, so no answer would
end. Without CUDA, it also cannot index a tensor on a card.
"""

import contextlib

import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

CPU = torch.device("cpu")
INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


def where(tensor):
    return getattr(tensor, "card", CPU)


class TwoCards(TorchFunctionMode):
    """Labels every new tensor with its card. An operation on tensors of different devices raises
    RuntimeError.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function == torch.Tensor.device.__get__:
            return where(args[0])
        if function is torch.Tensor.to:
            target, dtype, *_ = torch._C._nn._parse_to(*args[1:], **kwargs)
            args, kwargs = (args[0], dtype or args[0].dtype), {}
        else:
            target = kwargs.pop("device", CPU if function is torch.Tensor.cpu else None)
        # As in PyTorch, a tensor on a card may be indexed with a tensor on the CPU, and combined
        # with a single number on the CPU.
        may_be_cpu = function in INDEXING
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        met = [where(one) for one in tensors if one.dim()]
        cards = {one for one in met if not (may_be_cpu and one == CPU)}
        if len(cards) > 1 and function is not torch.Tensor.copy_:
            raise RuntimeError(f"{function}: tensors on {sorted(map(str, cards))}")
        made = function(*args, **kwargs)
        if target is None:
            place = next(iter(cards), where(tensors[0]) if tensors else CPU)
        else:
            place = torch.device(target)

        def label(tensor):
            if place != CPU or hasattr(tensor, "card"):
                # moving a tensor to another device makes a copy, so the original keeps its label
                if where(tensor) != place and any(tensor is one for one in tensors):
                    tensor = tensor.clone()
                tensor.card = place
            return tensor

        with torch._C.DisableTorchFunction():
            return tree_map_only(torch.Tensor, label, made)


@contextlib.contextmanager
def spread(module, second):
    """Spread a module over two cards inside the ``with`` block. Submodules whose names begin with
    one of ``second`` are on the second card, all others on the first. accelerate's hooks move
    tensors between the cards.
    """
    places = {}
    for name, part in module.named_modules():
        at = int(name.startswith(second))
        for tensor in [*part.parameters(recurse=False), *part.buffers(recurse=False)]:
            tensor.card = places[name] = torch.device("cuda", at)
    with TwoCards():
        for name, part in module.named_modules():
            if name in places or name.startswith(second):
                card = torch.device("cuda", int(name.startswith(second)))
                hook = AlignDevicesHook(card, place_submodules=False, skip_keys="past_key_values")
                hook.init_hook = lambda module: module  # nothing needs to be moved
                add_hook_to_module(part, hook)
        add_hook_to_module(
            module, AlignDevicesHook(io_same_device=True, skip_keys="past_key_values")
        )
        yield
