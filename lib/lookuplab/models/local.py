"""Runs any causal or encoder-decoder checkpoint of Hugging Face Transformers on this machine.

The weights are loaded only when the first answer must be generated. The decoding loop is in
``models.decoding``.
"""

import gc
import json
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookuplab import paths, work
from lookuplab.errors import UserError, check_choice, first_line
from lookuplab.models.completions import (
    Batches,
    Completion,
    Continuations,
    Decoding,
    Prompt,
    Requests,
    Work,
)
from lookuplab.models.names import (
    ADAPTER,
    base_of,
    is_adapter,
    is_mini,
    is_model,
    mini_models,
    model_folder,
    split_revision,
    table_name,
)
from lookuplab.models.tokens import (
    TAIL,
    Constraint,
    NameConstraint,
    NameTries,
    Trie,
    continuations,
)

DTYPES = ("float32", "bfloat16", "float16")
if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from lookuplab.models.decoding import DecodingRow

# weights in a checkpoint that are not needed to write text: buffers of older Transformers, heads
# for other tasks, layers that draft tokens, scales of a quantised cache, and layers for images or
# sound
UNUSED = re.compile(
    r"rotary_emb|inv_freq|position_ids|\.(attn|attention)\.(masked_)?bias$|\.[kv]_scale$"
    r"|(^|\.)(v_head|value_head|score|classifier|pooler|cls|mtp\w*|medusa\w*|eagle\w*|draft\w*)\."
    r"|(^|[._])(vision|visual|image|audio|multi_modal|mm_projector)"
)
# files in a checkpoint's folder that are not part of the model: output of training and evaluation,
# hidden files, documents and notes, and weights in formats that Transformers does not read
NOT_CONTENT = re.compile(
    r"""(?ix) \. .* | card\.json | .* ( results? | metrics | state | args ) \.json
    | ( training_args | optimizer | scheduler ) .* | rng_state .* | events\.out .* | latest
    | ( license | notice | readme | use_policy | makefile ) .* | zero_to_fp32\.py
    | (?! .* ( vocab | merges | dict ) ) .* \.txt
    | .* \. ( md | log | csv | tsv | out | err | png | jpe?g | gif | svg | pdf | html | ipynb | toml
    | ya?ml | sh | tmp | bak | orig | lock | db | ini | pth? | zip | gz | tar | parquet | npy | h5
    | msgpack | ot | onnx | gguf )"""
)
# A model needs this many times the memory of its weights, because answering takes memory, too. The
# cache of an answer of 2,048 tokens is 8% as large as the weights for Llama 2 7B, and smaller for
# most newer models.
ROOM_FOR_ONE = 1.1
# A model is put on one GPU only if the GPU's free memory is at least this many times the size of
# the weights, because answering takes memory, too.
ROOM = 1.25
# the date that a chat template gets if it asks for today's date; the default in Llama's templates
TODAY = date(2024, 7, 26)


@dataclass(eq=False)
class LocalModel:
    """A checkpoint, or an adapter on its base model, that answers prompts (see ``models.Model``).
    ``place`` is the name of one of the kit's own models, a folder, or a name on the hub. The
    configuration, the tokenizer and the weights are each read when they are first needed.

    ``chat`` sends every prompt through the chat template. ``dtype`` defaults to bfloat16 on GPUs
    and float32 on a CPU, whatever the dtype of the files; for the kit's own models it is float32.
    ``batch_size`` limits the rows of a batch; 0 stands for ``decoding.ROWS`` or, on the fast path,
    ``decoding.FAST_ROWS``. ``context`` is the maximum length of prompt plus completion in tokens,
    or None if there is no limit; the default is the checkpoint's.
    ``extra`` has variables for the chat template: {"enable_thinking": false}.
    ``trust_remote_code`` allows Transformers to run the checkpoint's own Python files.
    ``attn_implementation`` ("eager") and ``quantization_config`` ({"load_in_4bit": true}, which
    needs bitsandbytes) are passed to Transformers.

    ``device_map`` says where the weights go; a dictionary maps each part of the model to a device.
    By default, a model that fits on one GPU is put on the GPU with the most free memory. For a
    larger model the default is "auto": accelerate spreads the layers over all GPUs. The GPUs then
    compute one after the other, so they add memory, not speed.

    ``causal`` is true for a decoder, whose answers continue the prompt, and false for an
    encoder-decoder, whose answers begin a new text. ``work`` counts passes and tokens. Raises
    UserError for a model that is incomplete, unreadable or too large for the memory. Also raises
    UserError for an architecture that the decoding loop cannot run (``decoding.check_steps``).
    """

    place: str
    _: KW_ONLY
    chat: bool = False
    dtype: str = ""
    device_map: str | dict[str, str | int] | None = None
    batch_size: int = 0
    context: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    trust_remote_code: bool = False
    attn_implementation: str = ""
    quantization_config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name, folder, own = table_name(self.place), model_folder(self.place), mini_models()
        self.is_mini = is_mini(self.place)
        if self.is_mini:
            if self.place not in own:
                names = ", ".join(own) or "none yet: run `python -m recipes.mini.corpus models`"
                raise UserError(f"no mini model {self.place!r}; there are: {names}")
            # The dtype is the same on every machine, because it is part of the keys of stored
            # answers, and every machine should find the recorded answers.
            self.dtype = self.dtype or "float32"
        if folder.is_dir() and not is_model(folder):
            raise UserError(f"{folder} is not a checkpoint: it has no config.json")
        self.adapter = folder if is_adapter(folder) else None
        self.source = (str(folder), None) if folder.is_dir() else split_revision(self.place)
        if self.adapter:
            self.source = base_of(folder)
        whole = Path(self.source[0])
        if (whole / ADAPTER).is_file():
            raise UserError(
                f"model {self.name}: {whole} has {ADAPTER}, so Transformers would load the base of "
                "that adapter, not the weights in this folder; move the adapter's files "
                "(adapter_*) to another folder, or save the merged model without them"
            )
        for place in filter(Path.is_dir, (folder, whole)):
            model_files(place)  # raises UserError now if a file is missing
        if not self.dtype:
            import torch

            self.dtype = "bfloat16" if torch.cuda.is_available() else "float32"
        check_choice(f"model {self.name}: dtype", self.dtype, DTYPES)
        # passed to Transformers unchanged; these options may change answers
        self.given = {
            name: value
            for name in ("attn_implementation", "quantization_config")
            if (value := getattr(self, name))
        }
        self.causal, limit = self._limit()
        # Only rotary positions, whose configuration has this attribute, go on beyond the limit.
        # "dynamic" ones depend there on the longest text that the model has read so far.
        is_beyond = self.context and limit and self.context > limit
        rotation = is_beyond and getattr(self.config.get_text_config(), "rope_parameters", None)
        if is_beyond and (not rotation or rotation.get("rope_type") == "dynamic"):
            raise UserError(
                f"model {self.name}: context is {self.context}; it has positions for {limit} tokens"
            )
        self.context = self.context or limit
        self.work = Work()
        self.fast: Any = None  # a ``fast.Fast`` or None; set by ``decoding.check_steps``

    def _limit(self) -> tuple[bool, int | None]:
        """Return whether the model is causal, and the length of its context in tokens (None if it
        is unlimited).

        For the architectures of the mini models, config.json is read without Transformers. If all
        answers are stored, nothing else needs Transformers, so its import, which takes seconds, is
        avoided.
        """
        with suppress(OSError, ValueError):
            text = Path(self.source[0], "config.json").read_text("utf-8")
            match json.loads(text):
                case {"model_type": "llama", "max_position_embeddings": int(limit)} | {
                    "model_type": "gpt2",
                    "n_positions": int(limit),
                }:
                    return True, limit
                case {"model_type": "t5"}:
                    return False, None
        decoder = self.config.get_text_config()
        # T5 has neither, because its positions are relative; MPT has only the second
        positions = getattr(decoder, "max_position_embeddings", None)
        positions = positions or getattr(decoder, "max_seq_len", None)
        return not self.config.is_encoder_decoder, positions

    @cached_property
    def config(self) -> Any:
        """Return the Transformers configuration."""
        from transformers import AutoConfig

        def read(name: str, **options: Any) -> Any:
            config = AutoConfig.from_pretrained(name, **options)
            config.get_text_config()  # raises an error if several parts of the model read text
            return config

        return self._read(read)

    @cached_property
    def identity(self) -> dict[str, str]:
        """Return everything about the model that changes its answers: the hash of the files (or
        name and commit), dtype, adapter, context, use of the chat template, and options. No weights
        are loaded.
        """
        # "by prompt" means without the chat template; the words cannot be corrected, because they
        # are part of the keys of stored answers
        chat = "always" if self.chat else "by prompt"
        identity = {"dtype": self.dtype, "context": str(self.context), "chat": chat}
        if self.extra:
            identity["thinking"] = paths.canonical([None, self.extra])
        if self.trust_remote_code:
            identity["code"] = "its own"
        identity |= {name: paths.canonical(value) for name, value in self.given.items()}
        if self.chat and "strftime_now" in str(self.tokenizer.chat_template):
            identity["today"] = str(TODAY)
        place, revision = self.source
        if Path(place).is_dir():
            identity["content"] = model_hash(Path(place))
        else:
            from huggingface_hub import try_to_load_from_cache

            # In the hub's cache, each commit has a folder named after the commit. The commit of a
            # branch or tag is read from this name, because not every configuration states it.
            file = try_to_load_from_cache(place, "config.json", revision=revision)
            identity["checkpoint"] = (
                f"{place}@{Path(file).parent.name if file else revision or 'main'}"
            )
        if self.adapter:
            identity["adapter"] = f"{model_hash(self.adapter)} merged"
        return identity

    @cached_property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """Return the Transformers tokenizer. It is read from the adapter's folder, if this folder
        has a tokenizer, and otherwise from the checkpoint. Raises UserError if the tokenizer cannot
        be used.
        """
        from transformers import AutoTokenizer

        own = self.adapter and (self.adapter / "tokenizer_config.json").is_file()
        tokenizer: PreTrainedTokenizerBase = self._read(
            AutoTokenizer.from_pretrained, str(self.adapter) if own else ""
        )
        if not tokenizer.is_fast:
            raise UserError(
                f"model {self.name}: its tokenizer exists only in Python, and would decode the "
                "whole answer again after each token; serve the model and name the endpoint"
            )
        # if there are no tokenizer files, Transformers makes an empty tokenizer without an error
        if not tokenizer("client", add_special_tokens=False)["input_ids"]:
            raise UserError(
                f"checkpoint {self.name} has no usable tokenizer; save one beside the weights"
            )
        # the embedding must have a row for each token that may occur in a prompt: ordinary tokens,
        # and special tokens that the tokenizer itself or the chat template adds
        special = {id for id, token in tokenizer.added_tokens_decoder.items() if token.special}
        template = str(tokenizer.chat_template) if self.chat else ""
        used = tokenizer(f"client{template}", verbose=False)["input_ids"]
        self._check_embedded(tokenizer, {*tokenizer.get_vocab().values()} - special | {*used})
        return tokenizer

    def _check_embedded(self, tokenizer: Any, ids: Collection[int]) -> None:
        """Raise UserError if one of the token ids has no row in the embedding. With an adapter,
        nothing is checked, because the embedding is enlarged when the adapter is loaded.
        """
        rows = getattr(self.config.get_text_config(), "vocab_size", math.inf)
        if (last := max(ids)) >= rows and not self.adapter:
            raise UserError(
                f"model {self.name}: token {tokenizer.convert_ids_to_tokens(last)!r} of its "
                f"tokenizer has the id {last}, but its embedding has only {rows} rows; save the "
                "model again after resize_token_embeddings, or save the tokenizer without the token"
            )

    @cached_property
    def module(self) -> "PreTrainedModel":
        """Return the Transformers model with its weights, ready to decode. The memory of models
        that are no longer in use is freed first. Raises UserError if the model is too large for the
        memory, or if the weights do not match the architecture.
        """
        import torch
        from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

        from lookuplab.models.decoding import check_steps

        gc.collect()
        torch.cuda.empty_cache()
        # On a GPU, cuDNN's attention compiles a program for each shape of a batch, and in 16 bits
        # its results differ from run to run. The other kernels do neither (docs/engines.md).
        torch.backends.cuda.enable_cudnn_sdp(False)
        # If OMP_NUM_THREADS is not set (in JupyterLab, for example), torch would start too many
        # threads, because it does not know how many processors this job may use.
        if "OMP_NUM_THREADS" not in os.environ:
            # A mini model is so small that several threads would mostly wait for each other. If
            # other programs run at the same time, the threads would even wait for minutes.
            most = 1 if self.is_mini else work.processors()
            torch.set_num_threads(min(torch.get_num_threads(), most))
        kind = AutoModelForCausalLM if self.causal else AutoModelForSeq2SeqLM
        module, report = self._read(
            kind.from_pretrained,
            dtype=getattr(torch, self.dtype),
            device_map=self._device_map(kind),
            output_loading_info=True,
            **self.given,
        )
        if report["missing_keys"]:
            raise UserError(
                f"checkpoint {self.name} lacks weights ({min(report['missing_keys'])} ...); is "
                "it complete, and does it have the architecture that its config.json names?"
            )
        if unused := [name for name in report["unexpected_keys"] if not UNUSED.search(name)]:
            raise UserError(
                f"checkpoint {self.name} has weights that its architecture does not use "
                f"({min(unused)} ..., {len(unused)} tensors); does it have the architecture and "
                "size that its config.json names?"
            )
        devices = set(map(str, getattr(module, "hf_device_map", {}).values()))
        chosen = self.device_map == "cpu" or isinstance(self.device_map, dict)
        if torch.cuda.is_available() and not chosen and devices & {"cpu", "disk"}:
            raise UserError(
                f"model {self.name} does not fit on the GPUs in {self.dtype}: part of it would run "
                "on the CPU; use more GPUs or another dtype (NAME?dtype=bfloat16)"
            )
        if self.adapter:
            from peft import PeftModel, get_peft_model_state_dict
            from peft.utils import load_peft_weights

            if len(self.tokenizer) > module.get_input_embeddings().num_embeddings:
                module.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)
            with warnings.catch_warnings():  # PEFT 0.21 still reads an attribute by its old name
                warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
                # PEFT warns of the mistake in merging that ``_merge`` prevents
                warnings.filterwarnings("ignore", "Model (has|with) `tie_word_embeddings=True`")
                adapted = self._read(
                    lambda place, **_: PeftModel.from_pretrained(module, place), str(self.adapter)
                )
            given = {*load_peft_weights(str(self.adapter), device="cpu")}
            known = {*get_peft_model_state_dict(adapted, save_embedding_layers=False)}
            for names, what in (
                (known - given, "lacks weights"),
                (given - known - adapted.state_dict().keys(), "has weights that its base lacks"),
            ):
                if names:
                    raise UserError(
                        f"adapter {self.name} {what} ({min(names)} ..., {len(names)} of "
                        f"{len(known)}); does it belong to this base, and did PEFT save it?"
                    )
            self._merge(adapted)
        head = module.get_output_embeddings()
        if type(head) is torch.nn.Linear and head.weight.dtype != torch.float32:
            # The head computes in float32. In bfloat16, logits between 16 and 32 would be rounded
            # to multiples of 0.125. The head gets its own copy of the weight, because the embedding
            # may use the same weight.
            head.weight = torch.nn.Parameter(head.weight.float(), requires_grad=False)
            head.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(),))
        decoder: PreTrainedModel = module.eval()
        check_steps(self, decoder)
        return decoder

    def _merge(self, adapted: Any) -> None:
        """Merge the adapter into the base model. Raises UserError if PEFT cannot merge it, such as
        a prompt-tuning adapter, which has no weights for the base's layers.

        Some layers share one weight: tied embeddings and head, or the layers that
        ``layer_replication`` repeats. An adapted layer first gets its own copy of such a weight.
        Otherwise, merging would change the other layers, too.
        """
        import torch
        from peft.tuners.tuners_utils import BaseTunerLayer

        parts = [*adapted.modules()]
        users = Counter(id(weight) for part in parts for weight in part.parameters(recurse=False))
        for part in parts:
            if not isinstance(part, BaseTunerLayer):
                continue
            layer = part.get_base_layer()
            for name, weight in [*layer.named_parameters(recurse=False)]:
                if users[id(weight)] > 1:
                    own = torch.nn.Parameter(weight.detach().clone(), requires_grad=False)
                    setattr(layer, name, own)
        try:
            with warnings.catch_warnings():  # PEFT warns that the weights are no longer shared
                warnings.filterwarnings("ignore", "Input and output embeddings are no longer tied")
                adapted.merge_and_unload()
        # each kind of adapter has its own limits
        except Exception as error:
            raise UserError(
                f"adapter {self.name} cannot be merged into its base: {first_line(error)}"
            ) from error

    def _device_map(self, kind: Any) -> str | dict[str, str | int] | None:
        """Return the ``device_map`` for Transformers. If the user set ``device_map``, return this
        value. Without a GPU, return None. For quantised weights, return "sequential". For other
        weights, return a map to the GPU with the most free memory if this GPU has room for all of
        them, and otherwise "auto".

        Raises UserError if the weights and the cache of one answer probably need more memory than
        this job may use. The need is estimated without reading the weights.
        """
        import torch

        if self.device_map:
            return self.device_map
        cards = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
        free = [torch.cuda.mem_get_info(at)[0] for at in cards]
        if self.quantization_config or hasattr(self.config, "quantization_config"):
            # "sequential" makes Transformers fill one GPU after the other. Transformers knows the
            # size of quantised weights; the code below cannot compute this size.
            return "sequential" if free else None
        weights = 0
        # if the model cannot be built from its configuration, ``from_pretrained`` says why
        with suppress(Exception), torch.device("meta"):  # on "meta", weights have only shapes
            empty = kind.from_config(
                self.config,
                dtype=getattr(torch, self.dtype),
                trust_remote_code=self.trust_remote_code,
            )
            weights = sum(each.nbytes for each in empty.parameters())
        needed = ROOM_FOR_ONE * weights
        most = sum(free) or work.free_memory()
        if needed > most:
            raise UserError(
                f"model {self.name} needs {needed / 2**30:.2f} GiB in {self.dtype} "
                f"({weights / 2**30:.2f} for its weights, the rest for the cache of one answer), "
                f"and this job may use {most / 2**30:.2f}; use another dtype "
                "(NAME?dtype=bfloat16), fewer bits (quantization_config) or more memory"
            )
        if not free:
            return None
        return {"": free.index(max(free))} if ROOM * weights <= max(free) else "auto"

    def _read(self, load: Callable[..., Any], place: str = "", **options: Any) -> Any:
        """Return the result of ``load`` for the adapter's folder ``place`` or, if ``place`` is "",
        for the checkpoint. If ``load`` fails, raise UserError with the first line of the error and
        some advice.
        """
        name, revision = (place, None) if place else self.source
        try:
            return load(
                name, revision=revision, trust_remote_code=self.trust_remote_code, **options
            )
        # Transformers, PEFT, the hub client and safetensors raise a dozen kinds of exceptions
        except Exception as error:
            message = first_line(error)
            advice = (
                "name a model on the hub that is cached or can be reached; "
                "for a private model, first run `hf auth login`"
            )
            if Path(name).is_dir():
                has = ", ".join(sorted(os.listdir(name)))
                advice = f"call save_pretrained of model and tokenizer; the folder has {has}"
            if "custom code" in message:
                advice = "the option trust_remote_code=true runs it"
            if self.adapter and not place:
                message = f"its base {name!r}, which {ADAPTER} names: {message}"
            raise UserError(f"cannot load model {self.place}: {message} ({advice})") from error

    @cached_property
    def end_of_text(self) -> frozenset[int]:
        """Return the ids of all tokens that end an answer, according to the generation
        configuration and the tokenizer. Raises UserError for a generation configuration that is
        damaged.
        """
        from transformers import GenerationConfig

        try:
            config = GenerationConfig.from_pretrained(
                self.source[0], revision=self.source[1] or "main"
            )
        except (OSError, TypeError) as error:
            # this file lists the end-of-text tokens, without which the model would not stop
            if isinstance(error.__context__ or error, ValueError | TypeError):
                raise UserError(
                    f"cannot load model {self.place}: its generation_config.json is damaged"
                ) from error
            config = self.config  # there is no generation configuration
        # if a model also reads images, for example, its configuration may have no ``eos_token_id``
        ends = getattr(config, "eos_token_id", None)
        configured = ends if isinstance(ends, list) else [ends]
        if unfit := [end for end in configured if not isinstance(end, int | None)]:
            raise UserError(
                f"cannot load model {self.place}: its eos_token_id has {unfit[0]!r}, which is not "
                "the number of a token (generation_config.json)"
            )
        return frozenset({*configured, self.tokenizer.eos_token_id} - {None})

    @cached_property
    def names(self) -> NameTries:
        """Return the NameTries that restrict this model's answers to given names."""
        return NameTries(self.tokenizer, self.end_of_text)

    def prompt_ids(self, text: str, special: bool = True) -> list[int]:
        """Return the token ids of a prompt. ``special`` adds the tokenizer's own special tokens; it
        is False for the text from a chat template, which already contains them.

        An end-of-text token that the tokenizer adds is removed for a causal model, so that the
        answer can continue the prompt. An end-of-text token from a chat template is kept, because
        it ends the user's message (DialoGPT's template). A model must read at least one token, so
        an empty prompt becomes the begin-of-text token or, if there is none, the end-of-text token.
        Raises UserError if the tokenizer has neither.
        """
        encoded = self.tokenizer(text, add_special_tokens=special, verbose=False)
        ids: list[int] = encoded["input_ids"]
        may_be_added = special and self.causal and len(ids) > 1
        if may_be_added and ids[-1] == self.tokenizer.eos_token_id:
            ids = ids[:-1]
        starts = self.tokenizer.bos_token_id, self.tokenizer.eos_token_id
        ids = ids or [start for start in starts if start is not None][:1]
        if not ids:
            raise UserError("an empty prompt needs a tokenizer with a begin- or end-of-text token")
        self._check_embedded(self.tokenizer, ids)
        return ids

    def generate(
        self,
        requests: Requests,
        decoding: Decoding,
        constrain: Callable[[Prompt, list[int]], Constraint | None] | None = None,
    ) -> Batches:
        """Answer each (prompt, sample index), longest prompts first. Yield lists of the answers
        that ended since the last list.

        ``constrain`` takes the prompt and the tokens that an answer continues ([] if the answer
        begins a new text), and returns the constraint on the answer, or None. Without
        ``constrain``, answers are restricted to the prompt's ``choices``. Raises UserError for a
        prompt that is too long, for choices with a chat model, and if not even one row fits into
        memory.
        """
        from lookuplab.models.decoding import DecodingRow

        asked = {prompt for prompt, _ in requests}
        encoded = {prompt: self._encode(prompt) for prompt in asked}
        rows = []
        for prompt, sample in requests:
            ids = encoded[prompt]
            kept = self.fit(prompt.id, ids, decoding)
            before = kept if self.causal else []
            limit = decoding.max_new_tokens
            limit = min(limit, self.context - len(before)) if self.context else limit
            make = partial(constrain or self._name_constraint, prompt, before)
            rows.append(
                DecodingRow(prompt, sample, kept, len(ids) - len(kept), before, limit, make)
            )
        yield from self._write(rows, decoding, self.end_of_text)

    def _write(
        self, rows: "list[DecodingRow]", decoding: Decoding, end_of_text: frozenset[int]
    ) -> Batches:
        """Decode these rows, the longest prompts first. Yield lists of the answers that ended since
        the last list.
        """
        from lookuplab.models.decoding import decode_rows

        rows.sort(key=lambda row: (-len(row.ids), row.prompt.id, row.sample))
        return decode_rows(self, rows, decoding, end_of_text)

    def _name_constraint(self, prompt: Prompt, before: list[int]) -> Constraint | None:
        if prompt.choices and self.chat:
            raise UserError(
                f"prompt {prompt.id!r}: a chat model cannot be restricted to given names (choices)"
            )
        return self.names.constraint(before, prompt.choices) if prompt.choices else None

    def score(self, pairs: Continuations) -> Batches:
        """Compute the log-probabilities of each pair's continuation. Yield lists of completions
        with these log-probabilities, in any order.

        A continuation is generated like an answer, under a constraint that allows no other tokens.
        Raises UserError if prompt and continuation together are too long.
        """
        from lookuplab.models.decoding import DecodingRow

        rows = []
        for prompt, text in pairs:
            ids = self._encode(prompt)
            added = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
            before: list[int] = []
            if self.causal:
                before = ids
                # if the text were tokenised alone, some tokenizers would put a blank before it
                added = continuations(self.tokenizer, ids[-TAIL:], [text])[0] or added
                self.fit(prompt.id, ids + added[1:], Decoding())
            if added:
                dictate = partial(NameConstraint, self.names, Trie.of([added]))
                rows.append(
                    DecodingRow(prompt, 0, ids, 0, before, len(added), dictate, added, text)
                )
            else:
                yield [Completion(prompt.id, 0, text, (), (), (), "scored", len(ids))]
        yield from self._write(rows, Decoding(), frozenset())

    def _encode(self, prompt: Prompt) -> list[int]:
        """Return the tokens of the prompt. For a chat model, the prompt is first put into the chat
        template.

        If the template rejects the system role (Gemma's does), the system message is put before the
        user's message. Raises UserError if a chat model has no template, or if the template fails.
        """
        if not self.chat:
            return self.prompt_ids(prompt.text)
        if not self.tokenizer.chat_template:
            raise UserError(f"{self.name} has no chat template: use it as a base model")
        attempts = [prompt.messages]
        if prompt.system:
            attempts.append([{"role": "user", "content": f"{prompt.system}\n{prompt.text}"}])
        for turns in attempts:
            try:
                text = self.tokenizer.apply_chat_template(
                    turns,
                    chat_template=self._template,
                    tokenize=False,
                    add_generation_prompt=True,
                    **self.extra,
                )
            except Exception as error:  # a template is a program, which may raise anything
                failure = error
            else:
                return self.prompt_ids(str(text), special=False)
        raise UserError(f"{self.name}: its chat template fails: {failure}")

    @property
    def _template(self) -> str:
        """Return the chat template. If the template asks for today's date, it is changed so that it
        always gets ``TODAY`` in the format "26 Jul 2024".
        """
        template: str = self.tokenizer.get_chat_template()
        if "strftime_now" not in template:
            return template
        # The date is fixed by a macro before the template, because Transformers passes no functions
        # of ours to the template. Transformers removes the line break after the macro.
        return f"{{% macro strftime_now(format) %}}{TODAY:%d %b %Y}{{% endmacro %}}\n{template}"

    def fit(self, name: str, ids: list[int], decoding: Decoding) -> list[int]:
        """Return the prompt's tokens, ``ids``, cut to fit into the context window if
        ``decoding.truncation`` allows it. ``name`` is the prompt's id, for the error message.

        Without truncation, UserError is raised if the prompt leaves no room for one new token. With
        truncation on the left, the prompt is cut so that all ``max_new_tokens`` fit. If the prompt
        begins with a begin-of-text token, this token is kept.
        """
        cut = decoding.truncation == "left"
        context = self.context
        if context is None or len(ids) + (decoding.max_new_tokens if cut else 1) <= context:
            return ids
        if not cut:
            raise UserError(
                f"prompt {name!r} has {len(ids)} tokens and the model's context is {context}: use "
                "a model with a longer context (or raise `?context=N` if you set it), use fewer or "
                "shorter documents, or leave the task out"
            )
        first = ids[:1] if ids[0] == self.tokenizer.bos_token_id else []
        room = max(1, context - decoding.max_new_tokens) - len(first)
        return first + ids[len(ids) - room :]


def model_hash(folder: Path) -> str:
    """Return a hash over the names and contents of a model's files (``model_files``)."""
    return paths.folder_hash(folder, model_files(folder), "content")


def model_files(folder: Path) -> list[Path]:
    """Return the files of a checkpoint or adapter that Transformers and PEFT may read. These are
    the files directly in ``folder``, except those that match ``NOT_CONTENT``, and the chat
    templates in the subfolder ``additional_chat_templates``. Other subfolders (``runs``,
    ``checkpoint-500``, ``original``) are not part of the model.

    Raises UserError for a file that cannot be read, such as a broken link, and for a Git LFS
    pointer.
    """
    places = [*folder.iterdir(), *folder.glob("additional_chat_templates/*.jinja")]
    files = [
        file for file in sorted(places) if not (file.is_dir() or NOT_CONTENT.fullmatch(file.name))
    ]
    for file in files:
        try:
            with file.open("rb") as stream:
                begins = stream.read(23)
        except OSError as error:
            link = " (a broken link)" if file.is_symlink() else ""
            raise UserError(f"cannot read {file}{link}: {error.strerror}") from None
        if begins == b"version https://git-lfs":
            raise UserError(
                f"{file} is a Git LFS pointer without the content: run `git lfs pull` there"
            )
    return files
