"""The table of artifacts in README.md, from the committed figures: ``python -m lookuplab.report.readme`` writes it."""

from lookuplab import paths
from lookuplab.atomic import replacing
from lookuplab.claims import count
from lookuplab.report.last_run import LastRun, last_run, notebook_title
from lookuplab.report.pages import name_of
from lookuplab.runner import notebooks

FILE = paths.ROOT / "README.md"
BEGIN, END = "<!-- artifacts: written by `make readme` -->", "<!-- end of artifacts -->"


def table(run: LastRun) -> str:
    """One line a paper's notebook that has artifacts or claims: its title, and the verdicts on the claims."""
    lines = ["| Artifact | Notebook | Claims |", "|---|---|---|"]
    for notebook in notebooks.all_notebooks():
        if not (paths.PAPER / notebook.paper).is_dir():
            continue
        own = {entry.name for entry in run.entries if entry.notebook and entry.notebook.id == notebook.id}
        judged = [one for name in sorted(own | {notebook.name}) for one in run.judged(notebook.paper, name)]
        if own or judged:
            link = f"[{notebook_title(notebook.path)}](notebooks/{notebook.id}.ipynb)"
            lines.append(f"| {link} | `{notebook.id}` | {count(judged) + ' (not run)' * (not own)} |")
    return "\n".join(lines)


def verdicts(run: LastRun) -> str:
    """One sentence over all claims, paper by paper."""
    papers = dict.fromkeys(judgement.claim.paper for judgement in run.judgements)
    said = [f"{name_of(paper)} " + count(run.judged(paper)) for paper in papers]
    return f"{len(run.judgements)} claims: {'; '.join(said)}. Not decided: not run, or the interval leaves it open."


def written(text: str, run: LastRun) -> str:
    """README's text with the part between the two marks made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(run)}\n\n{verdicts(run)}\n{END}{after}"


def main() -> None:
    text = written(FILE.read_text(encoding="utf-8"), last_run("mini"))
    with replacing(FILE) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
