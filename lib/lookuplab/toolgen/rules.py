"""Whose rules: ToolGen as the paper states it, or as its replication package has it.

Parameters, commands, corpora and keys name the rules by a word, the ``variant``; ``rules_of`` turns
it into the object, with changes to single rules. Every other module asks the object and never
compares words.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from lookuplab.errors import UserError, check_choice

NEVER = 2.0  # higher than any probability
NameEndRule = Literal["first", "mean", "break"]


@dataclass(frozen=True)
class Rules:
    """The answers to every question on which paper and package differ. The defaults are the
    paper's, except for ``given_signature``.

    The functions and their texts:

    - ``package_docstrings``: docstrings are shortened by ``functions.package_docstring``; those
      that ``functions.REFUSED_DOCSTRINGS`` matches are left out, and so is ``async def``.
    - ``given_signature``: the model reads signature and docstring, as in the package. In the paper
      (Section II-A, Algorithm 2) it reads the docstring and writes the signature, too; the mini
      models were not trained to do that.
    - ``bare_signatures``: an encoder-decoder model reads them without `def` and colon.
    - ``comments_in_corpus``: marked functions keep their comments and blank lines.

    The tool:

    - ``whatever_fits``: Algorithm 1 asks about every word or literal that is not in
      ``marking.SKIPPED``, and the tool offers whatever Jedi would insert. Otherwise both are
      restricted to identifiers.
    - ``dummy``: the name after the caret in an unsaved file (see ``jedi_tool.cut_off``).
    - ``min_mark_probability``: the tool is asked only if the mark is at least this probable (0:
      wherever it is the most likely token; NEVER: nowhere). A less probable mark is not written,
      or, with ``weak_marks``, written without asking the tool.
    - ``name_end_rule``: what happens when one suggestion is complete and longer ones continue it.
      "first": the name ends there (Algorithm 3). "mean": the name goes on if the most likely next
      token of a longer one is at least as probable as the name's tokens so far on average.
      "break": the model chooses between such a token and a break.
    - ``boundary``: a break follows the name. Neither the paper nor the package has this rule; by
      Algorithm 3 the row is unconstrained from the end of the name.
    - ``marking``: the version of the marks, part of their keys. Increase it whenever the same
      answers of the tool would give a function different marks.

    Judging:

    - ``whole_functions``: whole functions with emptied literals are compared, not bodies, and
      coverage is that of the marked words, not of Jedi's definitions.
    - ``comments_in_code_bleu``: comments and docstrings are part of syntax and data flow.
    - ``absent_flow_counts``: CodeBLEU takes a missing data flow as 0; otherwise it is left out.
    - ``verbatim``: functions are inserted without mending their indentation, and nothing is cut
      out of an answer (see ``insertion.function_of``).
    - ``lines_beyond``: so many lines after a function count as its own.
    - ``errors_anywhere``: pylint's messages that count in any line of the file.
    - ``digits``: of the edit similarity (0 to 1).
    """

    variant: str
    package_docstrings: bool = False
    given_signature: bool = True
    bare_signatures: bool = False
    comments_in_corpus: bool = True
    whatever_fits: bool = False
    dummy: str = "_"
    min_mark_probability: float = 0.0
    weak_marks: bool = False
    name_end_rule: NameEndRule = "first"
    boundary: bool = False
    marking: int = 1
    whole_functions: bool = False
    comments_in_code_bleu: bool = False
    absent_flow_counts: bool = False
    verbatim: bool = False
    lines_beyond: int = 0
    errors_anywhere: tuple[str, ...] = ("E0001",)
    digits: int = 6

    def __post_init__(self) -> None:
        check_choice("name_end_rule", self.name_end_rule, get_args(NameEndRule))
        if not 0 <= self.min_mark_probability <= NEVER:
            raise UserError(
                f"min_mark_probability is {self.min_mark_probability}; it must be a probability, "
                f"or {NEVER} for never"
            )

    def __str__(self) -> str:
        return self.variant

    def changes(self) -> dict[str, object]:
        """What differs from the rules of that name, which alone says nothing of it in a key."""
        own = vars(self)
        named = vars(RULES[self.variant])
        return {name: value for name, value in own.items() if value != named[name]}


PAPER_RULES = Rules("paper")
PACKAGE_RULES = Rules(
    "package",
    package_docstrings=True,
    bare_signatures=True,
    comments_in_corpus=False,
    whatever_fits=True,
    dummy="",
    min_mark_probability=0.8,
    weak_marks=True,
    name_end_rule="mean",
    marking=2,
    whole_functions=True,
    comments_in_code_bleu=True,
    absent_flow_counts=True,
    verbatim=True,
    lines_beyond=2,
    errors_anywhere=(),
    digits=2,
)
RULES = {str(rules): rules for rules in (PAPER_RULES, PACKAGE_RULES)}


def rules_of(variant: str, **changes: Any) -> Rules:
    """The rules with that name, with ``changes``. Raises UserError for an unknown name or value."""
    check_choice("variant", variant, RULES)
    return replace(RULES[variant], **changes)
