"""Matrix products on CPUs: oneDNN instead of MKL where that is faster.

PyTorch computes float32 linear layers with MKL, which uses half the vector width on AMD processors. oneDNN, which
PyTorch carries too, does not: measured on one core of an AMD EPYC, 64 rows and layers of 256 x 704, 207 GFLOP/s
instead of 105. On Intel processors both are equal. Results differ in the last bits only.
"""

import torch
import torch.nn.functional as functional

ENOUGH_ROWS = 16  # below this oneDNN's preparations cost more than they save


def speed_up_linear(module: torch.nn.Module) -> None:
    """Let the float32 linear layers of a CPU model use oneDNN in inference mode; training is left as it is."""
    if not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return
    for layer in module.modules():
        if type(layer) is torch.nn.Linear and layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32:
            layer.forward = _Product(layer)


class _Product:
    """``layer``'s forward; a class and not a closure, so that the model can still be copied and pickled."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        self.layer = layer

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        weight, bias = self.layer.weight, self.layer.bias
        if torch.is_inference_mode_enabled() and inputs.numel() >= ENOUGH_ROWS * weight.shape[1]:
            return torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
        return functional.linear(inputs, weight, bias)
