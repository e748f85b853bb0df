"""Draws 100 mutants of the modules that make numbers, decide verdicts or keep data, and tells which
the tests catch.

    python tests/mutants.py > tests/mutants.csv      # about an hour

A mutant changes one operator, comparison, number, flag or default of one function. It is caught if
a test of the module's package fails; its own test file is tried first. The checkout itself is never
changed, only a copy.

The committed ``mutants.csv`` has 95 of the 100 that were drawn from the code of commit fac8d17. Its
tests caught 76 of them; for six others the test is named that was added since and then run against
the mutant by hand.
"""

import ast
import csv
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NUMBER, SEED = 100, 0
SECONDS = 300  # of one test file
ROOT = Path(__file__).parents[1]
MODULES = """
results/artifact results/claims results/paper results/verify execution/inside execution/server retrieval/metrics retrieval/rankers scoring/calibration
scoring/rates models/completions models/constraint models/store models/tokens cloudapi/tasks cloudapi/dag
cloudapi/first_call cloudapi/policies cloudapi/prompts cloudapi/specs cloudapi/validity
stackoverflow/asking stackoverflow/corpus stackoverflow/ds1000 stackoverflow/grader stackoverflow/ranking
stackoverflow/scores toolgen/dependencies toolgen/evaluation toolgen/generation toolgen/insertion toolgen/jedi_tool
toolgen/marking toolgen/pairs toolgen/similarity toolgen/success toolgen/tables toolgen/tool_use
""".split()
PAIRS = "Lt LtE, Gt GtE, Eq NotEq, In NotIn, Is IsNot, Add Sub, Mult Div, And Or".split(", ")
SWAPS = {getattr(ast, a): getattr(ast, b) for p in PAIRS for a, b in (p.split(), p.split()[::-1])}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sum": "len"}


def sites(tree):
    """(node, field, new value) of every possible change in functions."""
    kinds, inner = ast.FunctionDef | ast.AsyncFunctionDef, set()
    for function in ast.walk(
        tree
    ):  # outer functions come before the inner ones, which belong to them
        if not isinstance(function, kinds) or function in inner:
            continue
        inner |= {one for one in ast.walk(function) if isinstance(one, kinds)}
        defaults = function.args.defaults + [one for one in function.args.kw_defaults if one]
        for node in [each for part in (*defaults, *function.body) for each in ast.walk(part)]:
            match node:
                case ast.Compare(ops=[first, *others]) if type(first) in SWAPS:
                    yield node, "ops", [SWAPS[type(first)](), *others]
                case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in SWAPS:
                    yield node, "op", SWAPS[type(node.op)]()
                case ast.UnaryOp(op=ast.Not()):
                    yield node, "operand", ast.UnaryOp(ast.Not(), node.operand)
                case ast.Constant(value=bool() as value):
                    yield node, "value", not value
                case ast.Constant(value=int() | float() as value):
                    yield node, "value", value + 1
                case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                    yield node.func, "id", CALLS[name]


def caught_by(module, root):
    """The first test that fails; "" if none does."""
    folder, name = module.split("/")
    files = sorted(
        root.glob(f"tests/{folder}/test_*.py"),
        key=lambda file: (name not in file.stem, name not in file.read_text("utf-8"), file.stem),
    )
    env = os.environ | {"PYTHONPATH": f"{root}/lib:{root}/data", "LOOKUPLAB_HOME": str(root)}
    for file in files:
        call = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(file)]
        try:
            done = subprocess.run(
                call, cwd=root, env=env, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"{file.name} (time)"
        if done.returncode not in (0, 5):
            failed = re.search(r"^(?:FAILED|ERROR) \S*?(test_\w+\.py\S*)", done.stdout, re.M)
            return failed[1] if failed else file.name
    return ""


def main():
    places = {module: ROOT / f"lib/lookuplab/{module}.py" for module in MODULES}
    trees = {module: ast.parse(place.read_text("utf-8")) for module, place in places.items()}
    every = [(name, at) for name, tree in trees.items() for at in range(len(list(sites(tree))))]
    write = csv.writer(sys.stdout, lineterminator="\n").writerow
    write(["module", "line", "change", "caught_by"])
    with tempfile.TemporaryDirectory() as folder:
        leave = shutil.ignore_patterns(".venv", "runs")
        root = Path(shutil.copytree(ROOT, Path(folder, "kit"), symlinks=True, ignore=leave))
        for module, at in sorted(random.Random(SEED).sample(every, NUMBER)):
            file = root / places[module].relative_to(ROOT)
            source = file.read_text("utf-8")
            tree = ast.parse(source)
            node, field, new = list(sites(tree))[at]
            before = ast.unparse(node)
            setattr(node, field, new)
            file.write_text(ast.unparse(ast.fix_missing_locations(tree)), "utf-8")
            write(
                [module, node.lineno, f"{before} -> {ast.unparse(node)}", caught_by(module, root)]
            )
            sys.stdout.flush()
            file.write_text(source, "utf-8")


if __name__ == "__main__":
    main()
