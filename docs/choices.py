"""docs/choices.md: what the papers leave open, what the kit does, and what it costs, from the
committed tables: `python docs/choices.py > docs/choices.md`.
"""

import yaml

from lookuplab import paths
from lookuplab.results.paper import titles
from lookuplab.run.report import filled

HEAD = """# Choices that no page names

Where a paper says nothing, or says something that could not be followed, the kit had to choose.
Each measured effect is a number of a committed table, which the last column names. This page is
made by `python docs/choices.py` from these tables and `data/paper/choices.yaml`. ToolGen's text and
its packages differ in more: [docs/toolgen.md](toolgen.md).
"""


def page() -> str:
    """Return the page: one table a paper."""
    choices = yaml.safe_load((paths.PAPER / "choices.yaml").read_text("utf-8"))
    parts = [HEAD]
    for paper, rows in choices.items():
        parts += [
            f"## {titles()[paper]}",
            "",
            "| Choice | The paper | We | Measured effect | Table |",
        ]
        parts.append("|---|---|---|---|---|")
        for row in rows:
            table = row.get("table", "")
            cells = row["choice"], row["paper"], row["we"], row["effect"]
            place = paths.FIGURES / "mini" / table
            texts = [filled(cell, place) if table else cell for cell in cells]
            parts.append("| " + " | ".join([*texts, f"`{table}`" if table else ""]) + " |")
        parts.append("")
    return "\n".join(parts).rstrip()


if __name__ == "__main__":
    print(page())
