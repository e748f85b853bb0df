"""Tests which fenced block of an answer is taken as its code. CommonMark defines which lines open
and close such a block.
"""

import re

import pytest

from lookuplab.cloudapi.first_call import strip_backticks
from lookuplab.models.completions import blocks, code_of
from lookuplab.stackoverflow.ds1000 import solution_of
from lookuplab.toolgen.source import insert, location_of

FUNCTION = "def f(x, a):\n    return x\n"
OPENED = {
    "attributes": ("```python title=a.py", "```"),
    "braces": ("``` {.python .numberLines}", "```"),
    "four": ("````python", "````"),
    "tildes": ("~~~python", "~~~"),
    "five tildes, closed by more": ("~~~~~ py", "~~~~~~"),
    "other signs": ("```c++-python", "```"),
    "indented": ("   ```py", "  ```"),
    "no language": ("```", "```"),
    "never closed": ("```python", ""),
}


@pytest.mark.parametrize(("opened", "closed"), OPENED.values(), ids=OPENED)
def test_a_fence_of_any_kind_opens_and_closes_a_block_in_every_paper(opened, closed):
    answer = f"So:\n{opened}\nf(a=1)\n{closed}\n"
    assert strip_backticks(answer).strip() == "f(a=1)"
    assert solution_of(answer, "repaired").strip() == "f(a=1)"


@pytest.mark.parametrize("other", ["bash", "console", "text", "json", ""])
def test_of_several_blocks_the_python_one_is_taken(other):
    shell = f"```{other}\npip install it\n```\n"
    python = "~~~py\nf(a=1)\n~~~\n"
    for answer in (shell + python, "Like this:\n" + python + "then\n" + shell):
        assert solution_of(answer, "repaired") == "f(a=1)\n"
    assert [*blocks("```sh\nls\n```\n```\nx\n```")] == [(13, 17, 19)]


@pytest.mark.parametrize("margin", ["", "  ", "    ", "\t", "1. ", "- "])
@pytest.mark.parametrize("fence", ["```", "~~~"])
@pytest.mark.parametrize("end", ["\n{}{}\n", "\n", ""])
def test_code_loses_the_indentation_of_its_fence(margin, fence, end):
    """See CommonMark 0.31, Sections 4.5 and 5.2. The closing fence may be missing."""
    behind = margin if margin.isspace() else " " * len(margin)
    code = f"{margin}{fence}python\n{behind}if x:\n{behind}    f(a=1)"
    answer = f"Do:\n\n{code}{end.format(behind, fence)}"
    assert solution_of(answer, "repaired").strip() == "if x:\n    f(a=1)"
    inside = insert(FUNCTION, location_of(FUNCTION, 1), answer)
    assert inside.text.rstrip() == "def f(x, a):\n    if x:\n        f(a=1)"


def test_words_before_a_fence_in_its_line_indent_nothing():
    assert solution_of("So: ```python\n    f(a=1)\n```", "repaired") == "    f(a=1)\n"


@pytest.mark.parametrize("fence", ["```", "~~~~", "````"])
@pytest.mark.parametrize("mark", ["> ", " > > ", " > "])
@pytest.mark.parametrize("closed", [True, False])
def test_a_quoted_block_loses_the_signs_of_its_quotation(fence, mark, closed):
    """See CommonMark 0.31, Section 5.1."""
    lines = [f"{fence}python", "if x:", "    f(a=1)", *[fence] * closed]
    answer = "So:\n\n" + "\n".join(mark + line for line in lines) + "\n\nThat is it."
    assert solution_of(answer, "repaired").strip() == "if x:\n    f(a=1)"
    assert strip_backticks(f"{mark}{fence}\n{mark}f(a=1)\n{mark}{fence}") == "f(a=1)"


def test_a_longer_fence_holds_a_shorter_one():
    assert solution_of("````py\ns = 1\n```\nt = 2\n````", "repaired") == "s = 1\n```\nt = 2\n"


@pytest.mark.parametrize("outer", ["````markdown", "~~~md", "```markdown"])
@pytest.mark.parametrize("words", ["", "It is this:\n\n"])
def test_a_block_inside_markdown_is_taken_alone(outer, words):
    """A block with as many signs as its Markdown would end it by CommonMark, but models do this."""
    closed = re.match("[`~]+", outer)[0]
    answer = f"So:\n\n{outer}\n{words}```python\nf(a=1)\n```\n\nThat is it.\n{closed}\n"
    assert strip_backticks(answer).strip() == "f(a=1)"
    assert solution_of(answer, "repaired").strip() == "f(a=1)"
    inside = insert(FUNCTION, location_of(FUNCTION, 1), answer)
    assert inside.text.rstrip() == "def f(x, a):\n    f(a=1)"
    assert code_of("```md\n- x\n```", *blocks("```md\n- x\n```")) == "- x\n"
