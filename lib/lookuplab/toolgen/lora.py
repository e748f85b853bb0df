"""Low-rank adapters on the attention's projections (paper, Sections III-B-2 and IV-B)."""

import json
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model

from lookuplab.errors import UserError
from lookuplab.models.adapters import CONFIG
from lookuplab.toolgen.recipe import Recipe

ATTENTION = {"gpt2": ("c_attn", "attn.c_proj"), "t5": ("q", "k", "v", "o")}
LLAMA = ("q_proj", "k_proj", "v_proj", "o_proj")  # and all who name them like Llama


def wrap(module: Any, recipe: Recipe, mark: int | None) -> PeftModel:
    """The model with LoRA on the attention's four projections, everything else frozen.

    The row of the token ``mark`` in the embedding, and in the head where the two are not tied, goes into the adapter.
    It is trained unless the recipe says otherwise: a head's row that stays random can hardly win an argmax.
    """
    targets = recipe.lora_targets or ATTENTION.get(module.config.model_type, LLAMA)
    config = LoraConfig(
        r=recipe.lora_rank, lora_alpha=recipe.lora_alpha, lora_dropout=recipe.lora_dropout,
        fan_in_fan_out=module.config.model_type == "gpt2",  # its projections are stored transposed
        target_modules=list(targets), task_type="SEQ_2_SEQ_LM" if module.config.is_encoder_decoder else "CAUSAL_LM",
        trainable_token_indices=None if mark is None else {name: [mark] for name in _token_layers(module)})
    try:
        with warnings.catch_warnings():  # PEFT 0.21 still asks for an attribute by its old name
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
            wrapped = get_peft_model(module, config)
    except ValueError as error:  # no module has such a name
        raise UserError(f"LoRA finds no {', '.join(targets)} in a {module.config.model_type} model; "
                        "name its projections (lora_targets)") from error
    wrapped.peft_config["default"].base_model_name_or_path = ""  # else PEFT asks the hub at every checkpoint
    for name, weight in wrapped.named_parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()  # in 16 bits small steps would be rounded away
            weight.requires_grad = recipe.train_mark or "trainable_tokens" not in name
    return wrapped


def save(wrapped: PeftModel, folder: Path, base: str, revision: str | None, output: Path) -> None:
    """Write the adapter into ``folder``, which will be ``output``: a local base is named relative to that."""
    config = wrapped.peft_config["default"]
    if Path(base).is_dir():
        place = Path(os.path.relpath(Path(base).resolve(), output.resolve())).as_posix()
        config.base_model_name_or_path = place if place.startswith(".") else f"./{place}"
    else:
        config.base_model_name_or_path, config.revision = base, revision
    config.inference_mode = True
    wrapped.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink()  # PEFT's empty card
    written = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    written["target_modules"].sort()  # a set: equal adapters should be equal files
    (folder / CONFIG).write_text(json.dumps(written, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _token_layers(module: Any) -> list[str]:
    """The names of the embedding and, where it has weights of its own, of the head."""
    layers = [module.get_input_embeddings()]
    head = module.get_output_embeddings()
    if head is not None and head.weight is not layers[0].weight:
        layers.append(head)
    return [name for layer in layers for name, other in module.named_modules() if other is layer]


def trainable(module: torch.nn.Module) -> int:
    """Number of weights that are trained."""
    return sum(weight.numel() for weight in module.parameters() if weight.requires_grad)
