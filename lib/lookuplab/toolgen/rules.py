"""The rules of ToolGen as the paper states them, and as its two replication packages have them.

Parameters, commands, corpora and keys name the rules by a word, the ``variant``. ``rules_of`` turns
it into the object, with changes to single rules. Every other module uses the object and never
compares words. The packages are cs-wangchong/ToolGen-Replication at 8040c7e (2023-11-01, before
arXiv v1) and at 5ad4c70 (2024-07-17, for the journal); docs/toolgen.md says how they differ.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from lookuplab.errors import UserError, check_choice

NEVER = 2.0  # higher than any probability
NameEndRule = Literal["first", "mean", "break"]


@dataclass(frozen=True)
class Rules:
    """The rules of one ``variant`` (of RULES), and what notebooks vary of them.

    ``is_package`` and ``is_first_package`` (package-2023) decide about the docstrings and
    signatures that the model reads, the words before which the tool is called, the names that it
    offers, and the part of an answer that is judged. The code at each place says what a variant
    does there.

    - ``given_signature``: the model reads signature and docstring, as in the package. In the paper
      (Section II-A, Algorithm 2) it reads the docstring and writes the signature, too; the mini
      models were not trained to do that.
    - ``min_mark_probability``: the tool is called only if the mark is at least this probable (0:
      wherever it is the most likely token; NEVER: nowhere). A less probable mark is not written; in
      the package it is written, but the tool is not called.
    - ``name_end_rule``: what happens when one suggestion is complete and longer ones continue it.
      "first": the name ends there (Algorithm 3). "mean": the name goes on if the most likely next
      token of a longer one is at least as probable as the name's tokens so far on average.
      "break": the model chooses between such a token and a break.
    - ``boundary``: a break follows the name. Neither the paper nor the package has this rule; by
      Algorithm 3 the row is unconstrained from the end of the name.
    - ``every_error``: any error of pylint is a failure (package-2023), not the paper's three alone.
    """

    variant: str
    given_signature: bool = True
    min_mark_probability: float = 0.0
    name_end_rule: NameEndRule = "first"
    boundary: bool = False
    every_error: bool = False

    def __post_init__(self) -> None:
        check_choice("name_end_rule", self.name_end_rule, get_args(NameEndRule))
        if not 0 <= self.min_mark_probability <= NEVER:
            raise UserError(
                f"min_mark_probability is {self.min_mark_probability}; it must be a probability, "
                f"or {NEVER} for never"
            )

    def __str__(self) -> str:
        """Return the name in keys and corpora, in which ``package`` is package-2024, the first one
        supported.
        """
        return self.variant.removesuffix("-2024")

    @property
    def is_package(self) -> bool:
        return self.variant != "paper"

    @property
    def is_first_package(self) -> bool:
        return self.variant == "package-2023"

    @property
    def marker(self) -> str:
        """The rules by which marks are set; both packages have the same."""
        return "package" if self.is_package else "paper"

    @property
    def marking(self) -> int:
        """The version of the marks, a part of their keys. Increase it whenever the same answers of
        the tool would give a function different marks.
        """
        return 2 if self.is_package else 1

    def changes(self) -> dict[str, object]:
        """Return the rules that differ from those of the variant, for keys of answers: the
        variant's name does not show them.
        """
        own = vars(self)
        named = vars(RULES[self.variant])
        return {
            name: value
            for name, value in own.items()
            if value != named[name] and name != "every_error"
        }


PAPER_RULES = Rules("paper")
PACKAGE_2023_RULES = Rules("package-2023", min_mark_probability=0.8, every_error=True)
PACKAGE_RULES = Rules("package-2024", min_mark_probability=0.8, name_end_rule="mean")
RULES = {rules.variant: rules for rules in (PAPER_RULES, PACKAGE_2023_RULES, PACKAGE_RULES)}


def rules_of(variant: str, **changes: Any) -> Rules:
    """Return the rules with that name, with ``changes``; corpora say ``package`` for package-2024.
    Raises UserError for an unknown name or value.
    """
    if variant == str(PACKAGE_RULES):
        variant = PACKAGE_RULES.variant
    check_choice("variant", variant, RULES)
    return replace(RULES[variant], **changes)
