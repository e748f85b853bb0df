"""Loading a checkpoint, and knowing exactly which one it was."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
from peft import PeftModel
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from lookuplab.errors import UserError
from lookuplab.models.adapters import CONFIG, base_of, is_adapter
from lookuplab.models.content import content_hash
from lookuplab.models.cpu import speed_up_linear

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HUB_SECONDS = 10  # how long to wait for an answer before only the local cache is tried


@dataclass(frozen=True)
class Checkpoint:
    """A model with its tokenizer and its identity."""

    name: str
    module: torch.nn.Module
    tokenizer: object
    identity: dict[str, str]


def open_checkpoint(name: str, revision: str | None, dtype: str, device_map: str | None,
                    adapter: str | None) -> Checkpoint:
    """Load for inference, from a folder or, by name, from the hub (or its local cache). UserError where it fails."""
    folder = Path(name).expanduser()
    if is_adapter(folder):
        if adapter is not None:
            raise UserError(f"{name} is an adapter itself; give its base model with adapter={adapter!r}, or it alone")
        found = _adapted(read_checkpoint(*_base_of(folder), dtype, device_map), str(folder))
        found = replace(found, name=folder.resolve().name)
    else:
        found = read_checkpoint(name, revision, dtype, device_map)
        found = found if adapter is None else _adapted(found, adapter)
    speed_up_linear(found.module)
    found.module.eval()
    return found


def read_checkpoint(name: str, revision: str | None, dtype: str, device_map: str | None) -> Checkpoint:
    """The weights as they are stored, in ``dtype``. UserError where anything is missing."""
    if dtype != "auto" and dtype not in DTYPES:
        raise UserError(f"dtype is {dtype!r}; it must be auto, {', '.join(DTYPES)}")
    folder = _folder(name)
    where = {"pretrained_model_name_or_path": str(folder or name), "revision": revision,
             "local_files_only": folder is not None or not _hub_answers(name, revision)}
    config = _try(name, AutoConfig.from_pretrained, **where)
    tokenizer = _tokenizer(name, folder, where)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    gpu = torch.cuda.is_available()
    module, report = _try(name, kind.from_pretrained, **where, output_loading_info=True,
                          dtype=DTYPES.get(dtype, "auto" if gpu else torch.float32),
                          device_map=device_map or ("auto" if gpu else None))
    if report["missing_keys"]:
        raise UserError(f"checkpoint {name} lacks weights ({sorted(report['missing_keys'])[0]} ...); "
                        "is it complete, and of the architecture that its config.json names?")
    identity = {"dtype": str(module.dtype).removeprefix("torch.")}
    if folder is not None:
        identity["content"] = content_hash(folder)
    else:
        identity["checkpoint"] = f"{name}@{_commit(name, revision)}"
    return Checkpoint(Path(name).resolve().name if folder else name, module, tokenizer, identity)


def read_tokenizer(name: str, revision: str | None = None):
    """The tokenizer alone, of a checkpoint's or an adapter's folder or of a name on the hub."""
    path = Path(name).expanduser()
    folder = path if is_adapter(path) else _folder(name)
    return _tokenizer(name, folder, {"pretrained_model_name_or_path": str(folder or name), "revision": revision,
                                     "local_files_only": folder is not None or not _hub_answers(name, revision)})


def _commit(name: str, revision: str | None) -> str:
    """What a branch or tag stood for when it was loaded, told by the cache's folder: configurations need not say it."""
    file = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(file).parent.name if isinstance(file, str) else revision or "main"


def context_of(config) -> int | None:
    """Longest sequence of a causal model; encoder-decoder models here have relative positions and no limit."""
    return None if config.is_encoder_decoder else getattr(config.get_text_config(), "max_position_embeddings", None)


def _folder(name: str) -> Path | None:
    """The folder, None for a name on the hub. UserError for what looks like a path and is none."""
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UserError(f"{name} holds no checkpoint (no config.json); give a folder that save_pretrained wrote")
        return path
    if path.exists() or path.is_absolute() or name.startswith((".", "~")) or len(path.parts) > 2:
        raise UserError(f"there is no checkpoint folder {name}; check the path, or give a name on the hub (owner/name)")
    return None


def _hub_answers(name: str, revision: str | None) -> bool:
    """Ask the hub once; without an answer only its local cache is left, and nobody waits for a row of retries."""
    try:
        HfApi().model_info(name, revision=revision, timeout=HUB_SECONDS)
        return True
    except RevisionNotFoundError as error:
        raise UserError(f"model {name} has no revision {revision} on the hub") from error
    except RepositoryNotFoundError as error:
        raise UserError(f"there is no folder and no model on the hub named {name} "
                        "(a private or gated one needs: hf auth login)") from error
    except Exception:  # noqa: BLE001  no network, a proxy, offline mode: the loader says what it misses
        return False


def _tokenizer(name: str, folder: Path | None, where: dict):
    """The tokenizer. Transformers makes an empty one where a folder has none, so the result is tried."""
    files = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "*.model")
    reason = "no such files"
    if folder is None or any(any(folder.glob(pattern)) for pattern in files):
        try:
            tokenizer = AutoTokenizer.from_pretrained(**where)
            if tokenizer("client", add_special_tokens=False)["input_ids"]:
                return tokenizer
            reason = "it knows no tokens"
        except Exception as error:  # noqa: BLE001  as in _try
            reason = _first_line(error)
    raise UserError(f"checkpoint {name} has no usable tokenizer ({reason}); save one beside the weights: "
                    "tokenizer.save_pretrained(folder)")


def _try(name: str, load, **options):
    """``load`` with one clear line for whatever keeps it from loading."""
    try:
        return load(**options)
    except Exception as error:  # noqa: BLE001  Transformers, the hub client and safetensors raise a dozen kinds
        raise UserError(f"cannot load model {name}: {_first_line(error)} (it must be a complete checkpoint folder, or "
                        "the name of one on the hub that is cached or can be reached from here)") from error


def _first_line(error: Exception) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return line.rstrip(".") if " " in line else f"{type(error).__name__} {line}".strip()


def _base_of(folder: Path) -> tuple[str, str | None]:
    name, revision = base_of(folder)
    if Path(name).is_absolute() and not Path(name).is_dir():
        raise UserError(f"adapter {folder}: its base model {name} is not there; put it back, or correct {CONFIG}")
    return name, revision


def _adapted(found: Checkpoint, adapter: str) -> Checkpoint:
    """A PEFT adapter on the model, with its tokenizer if it brings one.

    In float32 it is merged into the weights, which changes the last bits of an answer's probabilities and costs no time
    when decoding; in 16 bits merging would round a small adapter away, so there it stays beside them.
    """
    try:
        folder = Path(adapter).expanduser()
        if not folder.is_dir():
            folder = Path(snapshot_download(adapter, local_files_only=not _hub_answers(adapter, None)))
        if (folder / "tokenizer_config.json").is_file():
            found = replace(found, tokenizer=_tokenizer(adapter, folder, {
                "pretrained_model_name_or_path": str(folder), "local_files_only": True}))
            if len(found.tokenizer) > found.module.get_input_embeddings().num_embeddings:
                found.module.resize_token_embeddings(len(found.tokenizer), mean_resizing=False)
        with warnings.catch_warnings():  # PEFT 0.21 still asks for an attribute by its old name
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
            with_adapter = PeftModel.from_pretrained(found.module, str(folder))
        if merged := found.module.dtype == torch.float32:
            with_adapter.merge_and_unload()
        found.identity["adapter"] = content_hash(folder) + " merged" * merged
        return found
    except Exception as error:  # noqa: BLE001  as in _try
        raise UserError(f"cannot load adapter {adapter}: {_first_line(error)} (it must be a folder that PEFT saved, or "
                        "the name of one on the hub that is cached or can be reached from here)") from error
