"""``lookuplab score ds1000``: run answers to DS-1000's problems against their tests."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from lookuplab.atomic import write_lines
from lookuplab.commands.run import scheduler_option
from lookuplab.errors import UserError


@click.command(short_help="Answers to DS-1000 problems, judged by execution.")
@click.argument("file", metavar="ANSWERS.jsonl")
@click.option("--problems", "problems_file", required=True, metavar="P.jsonl[.gz]",
              help="DS-1000 (`lookuplab data get ds1000`), or a file of the same form.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the verdicts here, not to stdout.")
@click.option("--environment", "environment_name", default="ds1000-grader", show_default=True,
              metavar="NAME", help="The Python that runs the tests: made by `lookuplab data get`, or a Python's path.")
@click.option("--sandbox", "sandbox_name", type=click.Choice(["bubblewrap", "unshare", "docker", "none"]),
              help="What keeps the programs from harm; none is no protection.  [default: the first that works]")
@click.option("--variant", type=click.Choice(["official", "repaired"]), default="official", show_default=True,
              help="DS-1000's own cutting of an answer's text, or one that loses no fenced or unindented answer.")
@click.option("--leave-out", default="", metavar="ID,ID", help="Do not score the answers to these problems.")
@click.option("--workers", type=click.IntRange(1), help="Servers at a time.  [default: one a CPU]")
@click.option("--seconds", type=click.FloatRange(1), default=120, show_default=True, help="CPU time of a program.")
@scheduler_option
def command(file: str, problems_file: str, output: Path | None, environment_name: str, sandbox_name: str | None,
            variant: str, leave_out: str, workers: int | None, seconds: float, scheduler: str | None) -> None:
    """Run answers to DS-1000's problems against their tests, in a sandbox.

    It protects the machine; a verdict presupposes an answer that does not attack its test.

    ANSWERS has one JSON object a line ("-" reads standard input) with the fields problem_id and solution; several lines
    with one problem_id are its samples, in their order. First the references of the problems asked must pass; where
    one does not, as one that needs the network, nothing is scored until its problem is named with --leave-out. What was
    graded is kept beside the completion store, so that a run that was stopped goes on where it ended.

    Writes problem_id, sample, passed and error per line, by problem and sample, and a table with pass@1 (mean over
    problems), the average pass rate (mean over answers) and intervals clustered by origin problem (to stderr when the
    verdicts go to stdout).

    \b
    Examples:
      lookuplab data get ds1000-grader
      lookuplab score ds1000 --problems ds1000.jsonl.gz answers.jsonl -o verdicts.jsonl
    """
    from lookuplab.cluster import joined
    from lookuplab.execution.sandbox import choose
    from lookuplab.stackoverflow import ds1000, environment, grader

    if output is not None and file != "-" and output.resolve() == Path(file).resolve():
        raise UserError(f"{output} is the input; name another output file")
    problems = ds1000.load(problems_file)
    names, answers = read_answers(file, {problem.id: problem for problem in problems}, problems_file, variant)
    runs = grader.Grader(environment.environment(environment_name), choose(sandbox_name), workers=workers,
                         limits=grader.limited(seconds))
    left = [one for one in leave_out.replace(" ", "").split(",") if one]
    with joined(scheduler, runs.workers) as runs.cluster:
        verdicts = grader.grade(problems, answers, runs, left)
    rows = [json.dumps({"problem_id": names[one.problem_id], "sample": one.sample, "passed": one.passed,
                        "error": one.error}, ensure_ascii=False) for one in verdicts]
    if output is None:
        click.echo("".join(row + "\n" for row in rows), nl=False)
    else:
        write_lines(output, rows)
    click.echo(summary(problems, verdicts, left, runs.sandbox.name), err=output is None)


def read_answers(file: str, problems: dict, problems_file: str, variant: str) -> tuple[dict[str, object], list]:
    """(problem id -> the id as the file has it, the answers with their code cut out); samples count up per problem."""
    from lookuplab.commands.score import read_lines
    from lookuplab.stackoverflow.ds1000 import indented, solution_of
    from lookuplab.stackoverflow.grader import Answer

    names, answers, samples = {}, [], Counter()
    for place, record in read_lines(file):
        one = record.get("problem_id")
        if isinstance(one, bool) or not isinstance(one, int | str):
            raise UserError(f"{place}: the field 'problem_id' is missing or no id")
        if str(one) not in problems:
            raise UserError(f"{place}: unknown problem {str(one)!r}; {problems_file} holds {len(problems)} others")
        if not isinstance(record.get("solution"), str):
            raise UserError(f"{place}: the field 'solution' is missing or no text")
        code = solution_of(record["solution"], variant)
        code = indented(problems[str(one)], code) if variant == "repaired" else code
        answers.append(Answer(str(one), samples[str(one)], code))
        samples[str(one)] += 1
        names[str(one)] = one
    if not answers:
        raise UserError(f"{file} holds no answer")
    return names, answers


def summary(problems: Sequence, verdicts: Sequence, left: Sequence[str], sandbox: str) -> str:
    """pass@1 and the average pass rate by library and in total, and what was not scored."""
    known = {problem.id: problem for problem in problems}
    libraries = sorted({known[one.problem_id].library for one in verdicts})
    header = ["", "problems", "pass@1", "95% interval", "answers", "average pass rate", "95% interval"]
    table = [header] + [_rates(library, [one for one in verdicts if known[one.problem_id].library == library], known)
                        for library in libraries] + [_rates("total", verdicts, known)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
    if left:
        lines.append(f"left out by name: {', '.join(left)}")
    return "\n".join([*lines, f"sandbox: {sandbox}"])


def _rates(name: str, verdicts: Iterable, known: dict) -> list[str]:
    from lookuplab.scoring.pass_at_k import passes
    from lookuplab.stackoverflow.passing import average_pass_rate, by_problem

    passed = by_problem(verdicts)
    if not passed:
        return [name, "0", "", "", "0", "", ""]
    clusters = {one: known[one].cluster for one in passed}
    return [name, *(cell for found in (passes(passed, clusters, 1), average_pass_rate(passed, clusters))
                    for cell in (str(found.n), f"{found.value:.1%}", f"{found.low:.1%} to {found.high:.1%}"))]
