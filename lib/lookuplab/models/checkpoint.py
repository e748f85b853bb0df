"""Loading a checkpoint, and knowing exactly which one it was."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from lookuplab.errors import UserError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
LARGE = 2**30  # bytes from which hashing shows its progress
NOT_CONTENT = {".md", ".log", ".txt.gz", ".gitattributes"}  # a card may be edited without changing the model


@dataclass(frozen=True)
class Checkpoint:
    """A model with its tokenizer and its identity."""

    name: str
    module: torch.nn.Module
    tokenizer: object
    identity: dict[str, str]


def open_checkpoint(name: str, revision: str | None, dtype: str, device_map: str | None,
                    adapter: str | None) -> Checkpoint:
    """Load from a folder or, by name, from the hub (or its local cache). UserError where anything is missing."""
    if dtype != "auto" and dtype not in DTYPES:
        raise UserError(f"dtype is {dtype!r}; it must be auto, {', '.join(DTYPES)}")
    folder = _folder(name)
    config = _try(name, AutoConfig.from_pretrained, name, revision=revision)
    tokenizer = _tokenizer(name, folder, revision)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    gpu = torch.cuda.is_available()
    module, report = _try(
        name, kind.from_pretrained, name, revision=revision, output_loading_info=True,
        dtype=DTYPES.get(dtype, "auto" if gpu else torch.float32),
        device_map=device_map or ("auto" if gpu else None),
    )
    if report["missing_keys"]:
        raise UserError(f"checkpoint {name} lacks weights ({sorted(report['missing_keys'])[0]} ...); "
                        "is it complete, and of the architecture that its config.json names?")
    if adapter is not None:
        _adapt(module, adapter)
    identity = _identity(name, folder, revision, module, adapter)
    return Checkpoint(Path(name).resolve().name if folder else name, module.eval(), tokenizer, identity)


def context_of(config) -> int | None:
    """Longest sequence of a causal model; encoder-decoder models here have relative positions and no limit."""
    return None if config.is_encoder_decoder else getattr(config.get_text_config(), "max_position_embeddings", None)


def content_hash(folder: Path) -> str:
    """sha256 over the names and bytes of a checkpoint's files; cards, logs and hidden files do not count."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and _is_content(file.relative_to(folder)))
    total = sum(file.stat().st_size for file in files)
    digest = hashlib.sha256()
    with tqdm(total=total, unit="B", unit_scale=True, desc=f"hashing {folder.name}", disable=total < LARGE) as bar:
        for file in files:
            digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as stream:
                while block := stream.read(2**20):
                    digest.update(block)
                    bar.update(len(block))
    return digest.hexdigest()


def _is_content(path: Path) -> bool:
    return not any(part.startswith(".") for part in path.parts) and path.suffix not in NOT_CONTENT


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


def _tokenizer(name: str, folder: Path | None, revision: str | None):
    """The tokenizer. Transformers makes an empty one where a folder has none, so the result is tried."""
    files = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "*.model")
    if folder is not None and not any(any(folder.glob(pattern)) for pattern in files):
        raise UserError(f"checkpoint {name} has no tokenizer; save one beside the weights "
                        "(tokenizer.save_pretrained)")
    tokenizer = _try(f"{name} (tokenizer)", AutoTokenizer.from_pretrained, name, revision=revision)
    if not tokenizer("client", add_special_tokens=False)["input_ids"]:
        raise UserError(f"the tokenizer of checkpoint {name} knows no tokens; save a complete one beside the weights")
    return tokenizer


def _try(what: str, load, name: str, **options):
    """``load`` with one clear line for whatever keeps it from loading."""
    try:
        return load(str(Path(name).expanduser()) if Path(name).expanduser().is_dir() else name, **options)
    except Exception as error:  # noqa: BLE001  Transformers, the hub client and safetensors raise a dozen kinds
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UserError(f"cannot load model {what}: {reason} (it must be a complete checkpoint folder or the name of "
                        "one on the hub that can be reached from here)") from error


def _adapt(module, adapter: str) -> None:
    try:
        module.load_adapter(adapter)
    except ImportError as error:
        raise UserError(f"adapter {adapter} needs the package peft; install it (pip install peft)") from error
    except Exception as error:  # noqa: BLE001  as above
        raise UserError(f"cannot load adapter {adapter}: {str(error).splitlines()[0]}") from error


def _identity(name: str, folder: Path | None, revision: str | None, module, adapter: str | None) -> dict[str, str]:
    """A folder is known by its content, a hub name by its commit. The device is no part: the answers are the same."""
    identity = {"dtype": str(module.dtype).removeprefix("torch.")}
    if folder is not None:
        identity["content"] = content_hash(folder)
    else:
        commit = getattr(module.config, "_commit_hash", None) or revision or "main"
        identity["checkpoint"] = f"{name}@{commit}"
    if adapter is not None:
        identity["adapter"] = content_hash(Path(adapter)) if Path(adapter).is_dir() else adapter
    return identity
