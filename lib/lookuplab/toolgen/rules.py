"""Defines the rules of ToolGen, as the paper states them and as its two replication packages apply
them, and what models read and write by these rules.

In parameters, commands, corpora and keys, a word (the ``variant``) names a set of rules.
``rules_of`` turns this word into a ``Rules`` object and can change single rules. All other modules
use the object and never compare words. The packages are cs-wangchong/ToolGen-Replication at commit
8040c7e (2023-11-01, before arXiv v1) and at commit 5ad4c70 (2024-07-17, for the journal);
docs/toolgen.md says how they differ.

The paper's models read a docstring and write a function. In the replication packages, models also
read the signature. ``prompt_text`` uses the packages' two formats, and the rule ``given_signature``
decides whether the signature is given. A decoder-only model continues after signature and
docstring::

    def add(self, *updates):
        '''Register updates.'''
        for update in <COMP>updates: ...

An encoder-decoder model reads the docstring below ``### Description:`` and the signature below
``### Signature:``, and writes the function without its docstring. By the rules of the packages, the
signature in the prompt has no `def` and no colon. If the signature is not given, the prompt has
only the docstring, and either kind of model writes the whole function without its docstring.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from lookuplab.errors import UserError, check_choice

MARK = "<COMP>"  # the paper's mark, which becomes a special token
NEVER = 2.0  # higher than any probability
NameEndRule = Literal["first", "mean", "break"]
ModelKind = Literal["decoder", "encoder-decoder"]  # the architecture of a model


@dataclass(frozen=True)
class Rules:
    """The rules of one ``variant`` (a key of RULES). Notebooks may change single rules.

    The properties ``is_package`` and ``is_package_2023`` (package-2023) decide which docstrings
    and signatures the model reads, before which words the tool is called, which names the tool
    offers, and which part of an answer is judged. Comments and docstrings of the code that uses
    these properties say how the variants differ.

    - ``given_signature``: the model reads signature and docstring, as in the packages. In the paper
      (Section II-A, Algorithm 2), the model reads only the docstring and writes the signature
      itself. The mini models were not trained to write signatures.
    - ``min_mark_probability``: the tool is called only if the mark has at least this probability.
      With 0, the tool is called wherever the mark is the most likely token; with NEVER, the tool is
      never called. By the paper's rules, the model cannot write a less probable mark. By the rules
      of the packages, the mark is written, but the tool is not called.
    - ``name_end_rule``: what happens when the model has written a whole suggestion, and longer
      suggestions begin with the same text. "first": the name ends there (Algorithm 3). "mean": the
      name continues if the probability of the most likely next token of a longer suggestion is at
      least the mean probability of the name's tokens so far. "break": the model chooses between
      the next token of a longer suggestion and a *break*, a token that cannot continue an
      identifier.
    - ``boundary``: a break must follow the name. Neither the paper nor the packages have this rule;
      by Algorithm 3 the model may write any token after the name.
    - ``every_error``: any error that pylint finds is a failure, as in package-2023, and not only
      the three errors of the paper.
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
        """Return the variant's name as it is written in keys and corpora. There, package-2024 is
        called ``package``, because it was the first package that the kit supported.
        """
        return self.variant.removesuffix("-2024")

    @property
    def is_package(self) -> bool:
        return self.variant != "paper"

    @property
    def is_package_2023(self) -> bool:
        return self.variant == "package-2023"


PAPER_RULES = Rules("paper")
PACKAGE_2023_RULES = Rules("package-2023", min_mark_probability=0.8, every_error=True)
PACKAGE_RULES = Rules("package-2024", min_mark_probability=0.8, name_end_rule="mean")
RULES = {rules.variant: rules for rules in (PAPER_RULES, PACKAGE_2023_RULES, PACKAGE_RULES)}


def rules_of(variant: str, **changes: Any) -> Rules:
    """Return the rules of a variant, with ``changes`` to single rules. The variant may also be
    ``package``, which is the name of package-2024 in corpora. Raises UserError for an unknown
    variant or a wrong value.
    """
    if variant == str(PACKAGE_RULES):
        variant = PACKAGE_RULES.variant
    check_choice("variant", variant, RULES)
    return replace(RULES[variant], **changes)


def writes_def(kind: ModelKind, rules: Rules = PAPER_RULES) -> bool:
    """Return whether models of this kind write the function from its `def` on. If not, they write
    only the body.
    """
    return kind == "encoder-decoder" or not rules.given_signature


def prompt_text(function: Any, kind: ModelKind, rules: Rules = PAPER_RULES) -> str:
    """Return the prompt for a function. ``function`` is an object with ``docstring``, ``signature``
    and ``body``.

    The prompt of a decoder-only model reveals the body's indentation (four blanks if the body has
    none); otherwise a prompt reveals nothing of the body. An empty docstring is left out together
    with its heading; the paper's functions all have a docstring.
    """
    docstring = function.docstring
    signature = function.signature
    if kind == "encoder-decoder":
        if rules.is_package:
            signature = re.sub(r"^(async\s+)?def\s+", "", signature).strip(" :")
        signature = signature if rules.given_signature else ""
        given = {"Description": docstring, "Signature": signature}
        return "\n\n".join(f"### {name}:\n{text}" for name, text in given.items() if text)
    if not rules.given_signature:
        return f"'''{docstring}'''\n"
    first = re.search(r"^([ \t]+)\S", function.body, re.MULTILINE)
    indent = first[1] if first else "    "
    return f"{signature}\n" + (f"{indent}'''{docstring}'''\n" if docstring else "")
