"""ToolGen as it reads: one question after the other, and nothing kept from one to the next.

``marking.mark`` with worker processes, ``generation.generate`` and ``evaluation.judge`` get the same marks, tokens
and verdicts. This module exists to show that: equal results, and what either way costs.
"""

import re
import shutil
import time
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import jedi
import torch

from lookuplab import python_sources
from lookuplab.models.local import LocalModel
from lookuplab.models.states import decoder_start
from lookuplab.models.tokens import UNFINISHED, encode
from lookuplab.toolgen.caret import ask, suggestions
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.jedi_kept import forget
from lookuplab.toolgen.jedi_tool import Answer
from lookuplab.toolgen.insertion import insert, locate, read_source
from lookuplab.toolgen.evaluation import Task
from lookuplab.toolgen.success import fresh_messages, verdict
from lookuplab.toolgen.pairs import kind_of, prompt_text
from lookuplab.toolgen.tool_use import Vocabulary


class SerialJedi:
    """TOOL-COMPLETE (Section II-B) in this process, in the place of a ``JediTool``: for each call a fresh script, with
    Jedi's own project and default environment, in which the whole file is parsed and every completion listed. It sees
    the same sources.

    ``calls`` and ``seconds`` count what it was asked and how long that took."""

    def __init__(self) -> None:
        self.calls, self.seconds = 0, 0.0

    def complete(self, root: str | Path, file: str, text: str, line: int, column: int, wanted: str | None = None
                 ) -> Answer:
        """As ``jedi_tool.Worker.complete``; ``wanted`` shortens nothing."""
        path, start = Path(root) / file, time.perf_counter()
        project = jedi.Project(root, sys_path=python_sources.search_path())
        forget(path)  # by default Jedi parses what changed since the last call
        try:
            found = jedi.Script(text, path=path, project=project).complete(line, column)
            return Answer(tuple(one.name for one in found), tuple(one.complete for one in found))
        except Exception as error:  # as in the workers: Jedi trips over other people's code
            return Answer(failure=f"error in Jedi: {type(error).__name__}")
        finally:
            forget(path)  # and takes this text for the file in calls about others
            self.calls, self.seconds = self.calls + 1, self.seconds + time.perf_counter() - start


@dataclass
class _Node:
    """A node of Algorithm 3's tree. ``is_closed``: its token holds a character behind the name as well."""

    children: dict[int, "_Node"] = field(default_factory=dict)
    is_terminal: bool = False
    is_closed: bool = False


class Writer:
    """Algorithms 2 and 3, one function at a time: each token from a forward pass over prompt and all tokens before it,
    without a cache, and after each token the whole text spelled anew.

    The rules are those of ``ToolUse("mark", variant, gate=0, ends="first")``: names are tokenised behind the mark, a
    break follows them, and a mark without suggestions is not repeated. A name that was tokenised once is not again.
    """

    def __init__(self, model: LocalModel, variant: str = "paper", tool: SerialJedi | None = None) -> None:
        self.model, self.variant, self.tool = model, variant, tool or SerialJedi()
        self.vocabulary = Vocabulary(model.tokenizer, model.end_of_text())
        self.kind = kind_of(model.module.config)

    @torch.inference_mode()
    def write(self, function: Function, max_new_tokens: int) -> list[int]:
        """The tokens of the answer, marks and the end of the text among them."""
        text = prompt_text(function, self.kind)
        (prompt,) = encode(self.model.tokenizer, [text], True, self.kind == "decoder")
        room = max_new_tokens
        if self.kind == "decoder" and self.model.context is not None:
            room = min(room, self.model.context - len(prompt))
        written, repeats = [], False
        while len(written) < room:
            probabilities = self._predict(prompt, written)
            if repeats:
                probabilities[self.vocabulary.mark] = 0
            written.append(probabilities.argmax().item())
            text, repeats = self._spelled(prompt, written), False
            if written[-1] == self.vocabulary.mark:
                tree = self._suggested(function, text)
                repeats = tree is None
                if tree is not None:
                    self._select(prompt, written, tree, room)
            if written[-1] in self.model.end_of_text():
                break
        return written

    def _predict(self, prompt: list[int], written: list[int]) -> torch.Tensor:
        """LLM-PREDICT: (vocabulary,) probabilities of the next token."""
        module = self.model.module
        if self.kind == "decoder":
            ids = torch.tensor([prompt + written], device=module.device)
            logits = module(input_ids=ids, use_cache=False).logits
        else:
            ids = torch.tensor([[decoder_start(module), *written]], device=module.device)
            read = torch.tensor([prompt], device=module.device)
            logits = module(input_ids=read, decoder_input_ids=ids, use_cache=False).logits
        return logits[0, -1].double().softmax(-1)

    def _spelled(self, prompt: list[int], written: list[int]) -> str:
        """The function so far, without marks."""
        before = prompt if self.kind == "decoder" else []
        start, whole = (self.model.tokenizer.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False)
                        for row in (before, before + written))
        return whole[len(start):]

    def _suggested(self, function: Function, text: str) -> _Node | None:
        """TOOL-COMPLETE and lines 1 to 5 of LLM-SELECT: the tree of what is left of the suggestions, None for none."""
        if text.endswith(UNFINISHED):  # within a character; no name can follow
            return None
        offered = suggestions(ask(self.tool, function, text, self.kind, self.variant))
        begun = re.search(r"\w*\Z", text)[0]
        rests = [name[len(begun):] for name in offered if name.startswith(begun)]
        paths, closed, _ = self.vocabulary.names.paths(self.vocabulary.behind_mark, [rest for rest in rests if rest])
        root = _Node(is_terminal="" in rests)
        for kind, rows in (("is_terminal", paths), ("is_closed", closed)):
            for row in rows:
                node = root
                for token in row:
                    node = node.children.setdefault(token, _Node())
                setattr(node, kind, True)
        return root if paths or root.is_terminal else None

    def _select(self, prompt: list[int], written: list[int], node: _Node, room: int) -> None:
        """LLM-SELECT from line 6 on, and the break behind the name."""
        while len(written) < room and not node.is_closed:
            probabilities = self._predict(prompt, written)
            mask = torch.zeros_like(probabilities)
            mask[self.vocabulary.names.breaks if node.is_terminal else list(node.children)] = 1
            written.append((probabilities * mask).argmax().item())
            self._spelled(prompt, written)
            if node.is_terminal:
                return
            node = node.children[written[-1]]


def verdicts(tasks: Sequence[Task], variant: str = "paper") -> Iterator[list]:
    """The messages against each function (see ``success.verdict``), by one pylint process a function. Each repository is copied, and the function written into the copy:
    the process reads files from the disk, and nobody's own may change."""
    with TemporaryDirectory() as folder:
        copies: dict[Path, Path] = {}
        for task in tasks:
            if task.root not in copies:
                copies[task.root] = Path(folder) / str(len(copies)) / task.root.name
                shutil.copytree(task.root, copies[task.root], ignore=shutil.ignore_patterns("__pycache__"))
            file, text = copies[task.root] / task.file, read_source(task.root / task.file)
            inserted = insert(text, locate(text, task.line), task.prediction)
            original = file.read_bytes()
            with tokenize.open(file) as stream:
                encoding = stream.encoding
            file.write_text(inserted.text, encoding, newline="\n")
            yield verdict(fresh_messages(copies[task.root], task.file), inserted, variant)
            file.write_bytes(original)
