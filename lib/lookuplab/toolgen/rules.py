"""Whose rules: ToolGen as the paper states it, or as its replication package has it.

Parameters, commands, corpora and keys name the rules by a word, the ``variant``; ``rules_of`` turns
it into the object. Every other module asks the object and never compares words.
"""

from dataclasses import dataclass
from typing import Literal

from lookuplab.errors import check_choice


@dataclass(frozen=True)
class Rules:
    """The answers to every question on which paper and package differ. The defaults are the
    paper's.

    The functions and their texts:

    - ``package_docstrings``: docstrings are shortened by ``functions.package_docstring``; those that
      ``functions.REFUSED`` matches are left out, and so is ``async def``.
    - ``bare_signatures``: an encoder-decoder model reads them without `def` and colon.
    - ``comments_in_corpus``: marked functions keep their comments and blank lines.

    The tool:

    - ``whatever_fits``: Algorithm 1 asks about every word or literal that is not in
      ``marking.SKIPPED``, and the tool offers whatever Jedi would insert. Otherwise both are
      restricted to identifiers.
    - ``dummy``: the name after the caret in an unsaved file (see ``jedi_tool.cut_off``).
    - ``gate``, ``ends``, ``boundary``: the defaults of ``tool_use.ToolUse``.
    - ``weak_marks``: a mark below the gate is written, but the tool is not asked.
    - ``marking``: the version of the marks, part of their keys. Increase it whenever the same
      answers of the tool would give a function different marks.

    Judging:

    - ``whole_functions``: whole functions with emptied literals are compared, not bodies, and
      coverage is that of the marked words, not of Jedi's definitions.
    - ``comments_in_code_bleu``: comments and docstrings are part of syntax and data flow.
    - ``absent_flow_counts``: CodeBLEU takes a missing data flow as 0; otherwise it is left out.
    - ``lines_beyond``: so many lines after a function count as its own.
    - ``errors_anywhere``: pylint's messages that count in any line of the file.
    - ``digits``: of the edit similarity (0 to 1).
    """

    variant: str
    package_docstrings: bool = False
    bare_signatures: bool = False
    comments_in_corpus: bool = True
    whatever_fits: bool = False
    dummy: str = "_"
    gate: float = 0.0
    ends: Literal["first", "mean"] = "first"
    boundary: bool = True
    weak_marks: bool = False
    marking: int = 1
    whole_functions: bool = False
    comments_in_code_bleu: bool = False
    absent_flow_counts: bool = False
    lines_beyond: int = 0
    errors_anywhere: tuple[str, ...] = ("E0001",)
    digits: int = 6

    def __str__(self) -> str:
        return self.variant


PAPER_RULES = Rules("paper")
PACKAGE_RULES = Rules(
    "package",
    package_docstrings=True,
    bare_signatures=True,
    comments_in_corpus=False,
    whatever_fits=True,
    dummy="",
    gate=0.8,
    ends="mean",
    boundary=False,
    weak_marks=True,
    marking=2,
    whole_functions=True,
    comments_in_code_bleu=True,
    absent_flow_counts=True,
    lines_beyond=2,
    errors_anywhere=(),
    digits=2,
)
RULES = {str(rules): rules for rules in (PAPER_RULES, PACKAGE_RULES)}


def rules_of(variant: str) -> Rules:
    """The rules with that name. Raises UserError if there are none."""
    check_choice("variant", variant, RULES)
    return RULES[variant]
