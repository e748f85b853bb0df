"""Implements ToolGen naively, as the paper describes it: without a cache, and with only one call of
Jedi or of the model at a time. Also implements DS-1000's grading naively.

The kit's own fast implementations (``marking.find_marks`` with worker processes,
``generation.generate`` and ``evaluation.ToolGen``) give the same marks, tokens and verdicts. This
file serves to show that the results are equal, and to measure how much faster the kit is.
"""

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import jedi
import torch

from lookuplab import python_sources
from lookuplab.models import Completion
from lookuplab.models.local import LocalModel
from lookuplab.models.tokens import UNFINISHED, Trie, decode
from lookuplab.sandbox.server import ENVIRONMENT, Outcome, Program
from lookuplab.toolgen.evaluation import Original, relevant_messages, with_prediction
from lookuplab.toolgen.functions import Function
from lookuplab.toolgen.generation import Vocabulary
from lookuplab.toolgen.jedi_tool import ToolAnswer, ask_tool, forget, suggestions
from lookuplab.toolgen.pairs import prompt_text
from lookuplab.toolgen.rules import PAPER_RULES, Rules
from lookuplab.toolgen.success import CHECKS, CRASHES, Message

# runs pylint as its command does, but with the pinned sources
FRESH = """
import sys
from lookuplab.toolgen.success import Linter
from pylint.lint import Run
Run.LinterClass = Linter
Run(sys.argv[1:])
"""


class SerialJedi:
    """Implements TOOL-COMPLETE (Section II-B) in this process. It takes the place of a
    ``JediTool``.

    Jedi is used as installed: each call makes a new script with Jedi's own project and default
    environment, parses the whole file and lists every completion. Jedi sees the same sources as in
    the kit.
    """

    def complete(
        self, root: Path, file: str, text: str, line: int, column: int, _: str | None = None
    ) -> ToolAnswer:
        """Return all completions, as ``jedi_tool.JediTool.complete`` does if no name is
        ``wanted``.
        """
        path = root / file
        project = jedi.Project(root, sys_path=python_sources.search_path())
        forget(path)  # otherwise Jedi would parse only what changed since the last call
        try:
            asked = jedi.Script(text, path=path, project=project)
            return ToolAnswer.of(asked.complete(line, column))
        # Jedi may raise any exception on other people's code; the workers catch them all, too
        except Exception as error:
            return ToolAnswer(failure=f"error in Jedi: {type(error).__name__}")
        finally:
            forget(path)  # otherwise calls about other files would read this text as the file's


class Writer:
    """Implements the paper's Algorithms 2 and 3 with a decoder-only model, one function at a time.

    Each token takes a forward pass over the prompt and all tokens before it, without a cache, and
    after each token the whole text is decoded again. The rules are those of ``ToolUse()``: names
    are tokenised after the mark, and a mark without suggestions is not repeated. Only the
    tokenisation of names is cached.
    """

    def __init__(self, model: LocalModel) -> None:
        self.model = model
        self.tool = SerialJedi()
        self.vocabulary = Vocabulary(model.tokenizer, model.end_of_text)

    @torch.inference_mode()
    def write(self, function: Function, max_new_tokens: int) -> list[int]:
        """Return the tokens of the answer, including marks and the end-of-text token."""
        prompt = self.model.prompt_ids(prompt_text(function, "decoder"))
        room = min(max_new_tokens, (self.model.context or math.inf) - len(prompt))
        mark = self.vocabulary.mark
        written = []
        repeats = False
        while len(written) < room:
            probabilities = self._predict(prompt, written)
            if repeats:
                probabilities[mark] = 0
            written.append(probabilities.argmax().item())
            text = self._spelled(prompt, written)
            repeats = False
            if written[-1] == mark:
                node = self._suggested(function, text)
                repeats = node is None or node.terminal
                while node and not node.terminal and len(written) < room:  # LLM-SELECT, line 7
                    probabilities = self._predict(prompt, written)
                    mask = torch.zeros_like(probabilities)
                    mask[list(node)] = 1
                    written.append((probabilities * mask).argmax().item())
                    self._spelled(prompt, written)
                    node = node[written[-1]]
            if written[-1] in self.model.end_of_text:
                break
        return written

    def _predict(self, prompt: list[int], written: list[int]) -> torch.Tensor:
        """Return the probabilities of the next token, (vocabulary,), as LLM-PREDICT does."""
        module = self.model.module
        row = torch.tensor([prompt + written], device=module.device)
        return module(row, use_cache=False).logits[0, -1].double().softmax(-1)

    def _spelled(self, prompt: list[int], written: list[int]) -> str:
        """Return the function so far, without marks."""
        start, whole = decode(self.model.tokenizer, [prompt, prompt + written])
        return whole[len(start) :]

    def _suggested(self, function: Function, text: str) -> Trie | None:
        """Return a trie of the suggestions, each without the part that is already written, or None
        if there are no suggestions. This is what TOOL-COMPLETE and lines 1 to 5 of LLM-SELECT do.
        """
        # the last token ends inside a character, where no name can follow
        if text.endswith(UNFINISHED):
            return None
        offered = suggestions(ask_tool(self.tool, function, text, "decoder"))
        begun = re.search(r"\w*\Z", text)[0]
        paths, _ = self.vocabulary.spellings(self.vocabulary.mark, offered, begun)
        return Trie.of(paths) if paths else None


def verdicts(
    pairs: Sequence[tuple[Original, Completion]], rules: Rules = PAPER_RULES
) -> Iterator[list]:
    """Yield the messages of pylint that count against each function, from one pylint process per
    function.

    Each repository is copied and the function is written into the copy, because pylint reads files
    from the disk and the user's own files must not change.
    """
    ignore = shutil.ignore_patterns("__pycache__")
    roots = {one.root for one, _ in pairs}
    with TemporaryDirectory() as folder:
        copies = {
            root: shutil.copytree(root, Path(folder, str(at), root.name), ignore=ignore)
            for at, root in enumerate(sorted(roots))
        }
        for task, completion in pairs:
            file = copies[task.root] / task.file
            *_, new = with_prediction(task, completion.text, rules)
            file.write_text(new.text, "utf-8", newline="\n")
            yield relevant_messages(fresh_messages(copies[task.root], task.file), new, rules)
            shutil.copyfile(task.root / task.file, file)


def fresh_messages(root: Path, file: str) -> list[Message]:
    """Return the messages of one pylint process about one file, which must already contain the
    generated function.
    """
    checks = f"--enable={','.join(CHECKS + CRASHES)}"
    command = [sys.executable, "-P", "-c", FRESH, "--rcfile=", "--disable=all", checks]
    command += ["--output-format=json", file]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    messages = json.loads(done.stdout or "[]")
    return [[one["message-id"], one["line"], one["message"]] for one in messages]


def fresh_process(one: Program, python: Path) -> Outcome:
    """Run a program as DS-1000's own code does, for comparison: in a new process that imports
    everything again, without a sandbox.
    """
    given = {"input": one.text.encode(), "env": ENVIRONMENT, "capture_output": True, "timeout": 240}
    with TemporaryDirectory() as place:
        done = subprocess.run([python, "-"], cwd=place, **given)
    error = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return Outcome(done.returncode == 0, error, 0)
