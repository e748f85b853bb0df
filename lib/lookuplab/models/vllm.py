"""Makes vLLM run a model in this process. vLLM has a paged cache, continuous batching, shared
prompt prefixes, quantised weights and support for several GPUs.

vLLM computes the forward passes. Prompts, tokens, stop rules, constraints and completions are
handled as for a local model (``models.local``), so in float32 the answers are the same with and
without vLLM. Each answer is yielded when it ends. A row (an answer in progress) that waits for
another program, such as ToolGen's Jedi, leaves the engine. When the program has answered, the row
enters the engine again with the tokens written so far. Reading these tokens again takes little
time, because most of them are in vLLM's prefix cache.
"""

import gc
import math
import os
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch

from lookuplab.errors import UserError
from lookuplab.models.completions import Batches, Decoding
from lookuplab.models.decoding import DecodingRow, row_seed
from lookuplab.models.local import LocalModel
from lookuplab.models.tokens import Constraint
from lookuplab.paths import canonical

# vLLM reads these variables when it is imported. The engine must run in this process, because the
# rows and their constraints are here. Only errors are logged, because vLLM's log is meant for
# servers.
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GiB

try:
    from vllm import EngineArgs, SamplingParams
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.core_client import InprocClient
    from vllm.v1.engine.llm_engine import LLMEngine
    from vllm.v1.sample.logits_processor import AdapterLogitsProcessor
except ImportError as failure:
    raise UserError(
        f"vLLM cannot be used here ({failure}): `make vllm` installs an environment with it "
        "(.venv-vllm; docs/engines.md)"
    ) from None

if TYPE_CHECKING:
    from vllm.outputs import RequestOutput

# the options with the same meaning as in LocalModel; all other options are passed to vLLM
OWN = ("chat", "dtype", "context", "extra", "trust_remote_code")
# options of vLLM that change how fast answers are generated, but not the answers (in float32)
WITHOUT_EFFECT = frozenset(
    """tensor_parallel_size pipeline_parallel_size data_parallel_size distributed_executor_backend
    enable_expert_parallel gpu_memory_utilization kv_cache_memory_bytes cpu_offload_gb swap_space
    max_num_seqs max_num_batched_tokens enable_chunked_prefill enable_prefix_caching block_size
    enforce_eager compilation_config async_scheduling attention_backend max_parallel_loading_workers
    load_format download_dir disable_log_stats disable_custom_all_reduce""".split()
)
_numbers = count()  # the ids of requests to the engine


@dataclass
class Running:
    """A row in the engine. ``constraint`` is the copy of the row's constraint that restricted the
    choice of the latest token, and ``margin`` is the margin of that choice (see
    ``decoding.choose``). Both are None if the row has no constraint.
    """

    row: DecodingRow
    constraint: Constraint | None = None
    margin: float | None = None

    def restrict(self, _tokens: list[int], logits: torch.Tensor) -> torch.Tensor:
        """Return the logits (vocabulary,) after the row's constraint has been applied. vLLM also
        calls this method in the middle of the prompt, where the result has no meaning. Only the
        last call before a token is chosen counts, so each call uses a new copy of the constraint.
        """
        assert self.row.constraint
        self.constraint = copy(self.row.constraint)
        scores, gate = self.constraint.restrict(logits) or (logits, math.inf)
        first, second = scores.topk(2).values.tolist()
        self.margin = min(first - second, gate)
        return scores


# request id -> row in the engine. RowConstraints finds the rows here, because vLLM itself creates
# the RowConstraints and gives them only request ids.
RUNNING: dict[str, Running] = {}


class RowConstraints(AdapterLogitsProcessor):
    """The logits processor through which vLLM applies each row's constraint to its next token."""

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(self, params: SamplingParams) -> Any:
        request = (params.extra_args or {}).get("row")
        return RUNNING[request].restrict if request else None


class VllmModel(LocalModel):
    """A local model (see ``LocalModel``) that vLLM runs, named ``vllm:PLACE``.

    Options in OWN are those of ``LocalModel``. All others are passed to vLLM (``EngineArgs``) under
    vLLM's names: ``tensor_parallel_size=2``, ``quantization=fp8``, ``gpu_memory_utilization=0.8``.
    Options of vLLM that may change answers are part of ``identity``. A process has at most one
    engine at a time. Raises UserError if vLLM refuses an option, if it does not support the model's
    architecture, or if memory does not suffice.
    """

    # a weak reference: returns the model whose engine this process holds, or None
    _loaded: "Callable[[], VllmModel | None]" = staticmethod(lambda: None)

    def __init__(self, place: str, **options: Any) -> None:
        if "max_model_len" in options:
            options["context"] = options.pop("max_model_len")
        self.options = {name: options[name] for name in options if name not in OWN}
        super().__init__(place, **{name: options[name] for name in OWN if name in options})
        if not self.causal:
            raise UserError(f"model {self.name}: vLLM runs no encoder-decoder models; omit vllm:")

    @cached_property
    def identity(self) -> dict[str, str]:
        """Return the identity of the local model, with the engine and its options added."""
        kept = {name: value for name, value in self.options.items() if name not in WITHOUT_EFFECT}
        return super().identity | {"engine": f"vllm {canonical(kept)}" if kept else "vllm"}

    @cached_property
    def engine(self) -> LLMEngine:
        """Return vLLM's engine with the model's weights. The engine of another model is freed
        first.
        """
        if loaded := VllmModel._loaded():
            vars(loaded).pop("engine", None)
        gc.collect()
        VllmModel._loaded = staticmethod(weakref.ref(self))
        stated: dict[str, Any] = {
            "dtype": self.dtype,
            "max_model_len": self.context,
            "trust_remote_code": self.trust_remote_code,
            "skip_tokenizer_init": True,
            "disable_log_stats": True,
            # off, because a row must have read and checked a token before vLLM chooses the next one
            "async_scheduling": False,
        }
        if "speculative_config" not in self.options:
            stated["logits_processors"] = [RowConstraints]
        try:
            with self._weights() as weights:
                return LLMEngine.from_engine_args(EngineArgs(**stated | weights | self.options))
        # pydantic, torch and vLLM raise a dozen kinds of exceptions
        except Exception as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise UserError(f"vLLM cannot run model {self.name}: {said[:300]}") from error

    @contextmanager
    def _weights(self) -> Iterator[dict[str, Any]]:
        """Yield the options that tell vLLM where the weights are. The weights of an adapter are
        first merged into those of the base model, as for a local model, and saved in a temporary
        folder.
        """
        place, revision = self.source
        with TemporaryDirectory() as merged:
            if self.adapter:
                self.module.save_pretrained(merged)
                del self.module
                place, revision = merged, None
            yield {"model": place, "revision": revision}

    def _check_constrainable(self) -> None:
        """Raise UserError if constraints cannot be applied. vLLM must choose tokens in this
        process, because other processes do not have the rows, and must choose them one by one.
        """
        parallel = self.engine.vllm_config.parallel_config
        if (
            parallel.world_size > 1
            or "speculative_config" in self.options
            or self.engine.vllm_config.scheduler_config.async_scheduling
            or not isinstance(self.engine.engine_core, InprocClient)
        ):
            raise UserError(
                f"model {self.name}: to restrict answers to given names or to a tool's, vLLM must "
                "choose tokens in this process: leave out tensor_parallel_size, "
                "pipeline_parallel_size, speculative_config and async_scheduling, and unset "
                "VLLM_ENABLE_V1_MULTIPROCESSING"
            )

    def _write(
        self, rows: list[DecodingRow], decoding: Decoding, end_of_text: frozenset[int]
    ) -> Batches:
        engine = self.engine
        mine = set[str]()
        waiting = dict[Any, DecodingRow]()

        def enter(row: DecodingRow) -> None:
            request = str(next(_numbers))
            if row.constraint:
                self._check_constrainable()
            RUNNING[request] = Running(row)
            mine.add(request)
            prompt, parameters = self._request(row, decoding, end_of_text, request)
            engine.add_request(request, prompt, parameters)

        def leave(request: str) -> DecodingRow:
            mine.discard(request)
            return RUNNING.pop(request).row

        try:
            for row in rows:
                row.begin(self.tokenizer, decoding)
                if row.scored_tokens:
                    row.constraint = None  # not needed: vLLM scores a given text by reading it
                enter(row)
            while mine or waiting:
                if waiting:
                    done, _ = wait(waiting, None if not mine else 0, FIRST_COMPLETED)
                    for future in done:
                        enter(waiting.pop(future))
                finished = []
                for output in self._step():
                    row = self._read_tokens(output, decoding, end_of_text)
                    pending = row.constraint.pending if row.constraint else None
                    if not (row.finish_reason or pending):
                        continue
                    if not output.finished:
                        engine.abort_request([output.request_id])
                    leave(output.request_id)
                    if row.finish_reason:
                        finished.append(row.completion())
                    else:
                        waiting[pending] = row
                if finished:
                    yield finished
        finally:  # also if a row raises an error, or if the caller stops early
            engine.abort_request(list(mine))
            for request in list(mine):
                leave(request)

    def _step(self) -> "list[RequestOutput]":
        try:
            return self.engine.step()
        # raised, for example, if vLLM has no kernel for this processor, or if memory runs out
        except (RuntimeError, ValueError) as error:
            raise UserError(f"vLLM failed on model {self.name}: {str(error)[:300]}") from error

    def _request(
        self, row: DecodingRow, decoding: Decoding, end_of_text: frozenset[int], request: str
    ) -> tuple[dict[str, list[int]], SamplingParams]:
        """Return the prompt that vLLM should read for a row, and the sampling parameters. The
        prompt includes the tokens of the answer that are already written. To score a given text,
        vLLM reads all tokens of the text but the last, and may then write only this last token.
        """
        read = row.ids + list(row.scored_tokens[:-1] or row.tokens)
        return {"prompt_token_ids": read}, SamplingParams(
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            # a row that enters the engine again gets another seed, so that it draws new numbers
            seed=(row_seed(row, decoding) + len(row.tokens)) % 2**32,
            max_tokens=1 if row.scored_tokens else row.limit - len(row.tokens),
            logprobs=2,
            prompt_logprobs=0 if row.scored_tokens else None,
            allowed_token_ids=row.scored_tokens[-1:] or None,
            stop_token_ids=list(end_of_text),
            ignore_eos=True,  # ``stop_token_ids`` has all tokens that end an answer
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args={"row": request} if row.constraint else None,
        )

    def _read_tokens(
        self, output: "RequestOutput", decoding: Decoding, end_of_text: frozenset[int]
    ) -> DecodingRow:
        """Append tokens to a row, and return the row. ``output`` has the tokens that a step of the
        engine chose for this row. Stop when the row ends or waits for another program.
        """
        running = RUNNING[output.request_id]
        (written,) = output.outputs
        row = running.row
        row.constraint = running.constraint or row.constraint
        all_logprobs = written.logprobs or []
        if row.scored_tokens and output.prompt_logprobs:
            all_logprobs = [*output.prompt_logprobs[len(row.ids) :], *all_logprobs]
        for token, logprobs in zip(
            row.scored_tokens or written.token_ids, all_logprobs, strict=True
        ):
            likely = sorted((logprob.logprob for logprob in logprobs.values()), reverse=True)
            margin = math.inf
            if not (row.scored_tokens or decoding.temperature):
                margin = likely[0] - likely[1] if running.margin is None else running.margin
            row.push(token, logprobs[token].logprob, margin, end_of_text)
            if row.finish_reason or (row.constraint and row.constraint.pending):
                break
        return row
