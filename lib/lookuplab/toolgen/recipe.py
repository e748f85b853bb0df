"""What decides the weights of a fine-tuned model, besides its base and the pairs (paper, Section IV-B)."""

from dataclasses import dataclass

from lookuplab.errors import UserError


@dataclass(frozen=True)
class Recipe:
    """The paper states epochs, rate, batch, seed and LoRA's two numbers; the rest are the defaults of Transformers.

    ``batch_size`` counts pairs a step, over all processes and accumulated parts. ``lora_rank`` None trains all weights;
    ``lora_targets`` None means the attention's four projections. ``train_mark``: with LoRA the mark's rows in embedding
    and head are trained too; they are new and would else stay random. ``max_tokens`` is the longest pair (decoder:
    prompt and answer together; encoder-decoder: each), None leaves it to the model's context. ``loss_on`` "all" takes a
    decoder's prompt as well. ``precision`` "bf16" is autocast. ``sampling`` "group_by_length" puts pairs of like length
    into a batch: less padding, another order.
    """

    epochs: int = 10
    learning_rate: float = 5e-6
    batch_size: int = 32
    seed: int = 42
    lora_rank: int | None = None
    lora_alpha: int = 16
    lora_dropout: float = 0.0
    lora_targets: tuple[str, ...] | None = None
    train_mark: bool = True
    optimizer: str = "adamw_torch_fused"
    schedule: str = "linear"
    warmup_steps: float = 0  # below 1: a share of all steps
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    max_tokens: int | None = None
    loss_on: str = "answer"
    precision: str = "float32"
    sampling: str = "random"
    accumulation: int = 1
    checkpoint_activations: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "learning_rate", "batch_size", "lora_alpha", "accumulation"):
            if not getattr(self, name) > 0:
                raise UserError(f"recipe: {name} is {getattr(self, name)}; it must be above 0")
        for name in ("lora_rank", "max_tokens"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UserError(f"recipe: {name} is {getattr(self, name)}; it must be at least 1, or None")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise UserError(f"recipe: {name} is {getattr(self, name)!r}; it must be {' or '.join(known)}")


_CHOICES = {"loss_on": ("answer", "all"), "precision": ("float32", "bf16"), "sampling": ("random", "group_by_length")}

# Section IV-B, "Model Fine-tuning". Optimiser, schedule, warm-up and weight decay are not stated: Trainer's defaults.
# On all four projections of CodeLlama-7B rank 16 is 16.8 of 6,738 million weights, the paper's 0.25 %; on q and v
# alone it would be half of that.
PAPER = {"codegpt": Recipe(), "codet5": Recipe(), "codellama": Recipe(epochs=2, lora_rank=16, lora_alpha=16)}
