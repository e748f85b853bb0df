"""Makes an ordinary checkpoint from a downloaded GGUF file with quantised weights, such as Gemma 3
270M from the package index.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import click
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from lookuplab.errors import UserError
from lookuplab.paths import make_folder
from lookuplab.run import downloads
from lookuplab.run.cli import command, run_module


def convert(file: Path, folder: Path) -> None:
    """Write the weights of a GGUF file, in bfloat16, and its tokenizer into ``folder``, as an
    ordinary checkpoint. Raises UserError if the package gguf is not installed.
    """
    try:
        module = AutoModelForCausalLM.from_pretrained(
            file.parent,
            gguf_file=file.name,
            dtype=torch.bfloat16,
            # dequantise even where kernels could compute with quantised weights
            quantization_config=GgufConfig(dequantize=True),
        )
    except ImportError as error:
        raise UserError(
            "reading quantised weights needs a package: pip install gguf==0.19.0"
        ) from error
    # Transformers treats every model read from GGUF as quantised, and would refuse to save it
    module.hf_quantizer = None  # type: ignore[assignment]
    module.config.__dict__.pop("quantization_config", None)
    module.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)


@command()
def main(name: str) -> None:
    """Make a checkpoint from the download NAME, whose weights are quantised.

    Afterwards, NAME can be used as a model.

    \b
    Example:
      lookuplab data get gemma-3-270m --yes
      python -m recipes.from_gguf gemma-3-270m
    """
    source = downloads.find(name)
    if not source.path.is_file() or source.path.suffix != ".gguf":
        raise UserError(f"no quantised weights at {source.path}: `lookuplab data get {name}` first")
    if not source.folder.is_dir():
        with TemporaryDirectory(dir=make_folder(source.folder.parent)) as temporary:
            ready = Path(temporary) / name
            convert(source.path, ready)
            downloads.copy_texts(source.path.parent, ready)
            ready.rename(source.folder)
    click.echo(source.folder)


if __name__ == "__main__":
    run_module(main)
