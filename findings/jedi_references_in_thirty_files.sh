#!/usr/bin/env bash
# jedi 0.20.1: `get_references` finds the uses of a function in at most 30 files, without saying that there are more.
#
# Expected: in a project of 60 small modules that all call one function, the result has 60 calls. The documentation says that Jedi stops if a search is too
# complicated, but here every file has four lines and imports the function in the plainest way.
# Seen: Jedi parses 30 files that contain the name, and stops. Another order of the files gives other references: they are those that the folder lists
# first. Nothing in the result tells a complete list from a cut one. `rename` uses the same search: it changes the definition and 30 of the 60 callers,
# so the program breaks.
# Why it matters: repository-level benchmarks use references to find which functions depend on which, how often an API is used, and which files must be in
# the prompt. The counts have a ceiling at 30 files, so exactly the functions that everybody uses look less used than they are.
# What to do: call `goto` at every occurrence of the name instead.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet jedi==0.20.1 parso==0.8.7 2>/dev/null
mkdir "$place/project"
cd "$place/project"
"$place/venv/bin/python" - <<'PY'
from pathlib import Path

import jedi

seen = []
for files in (10, 29, 60):
    root = Path.cwd() / f"used_by_{files}"
    (root / "acme").mkdir(parents=True)
    (root / "acme/__init__.py").touch()
    (root / "acme/helper.py").write_text("def load(path):\n    return path\n")
    for number in range(files):
        (root / f"acme/user{number}.py").write_text(f"from acme.helper import load\n\ndef run{number}():\n    return load({number})\n")
    script = jedi.Script(path=root / "acme/helper.py", project=jedi.Project(root))
    found = {name.module_name for name in script.get_references(1, 4)} - {"acme.helper"}
    goto = 0
    for number in range(files):
        user = jedi.Script(path=root / f"acme/user{number}.py", project=jedi.Project(root))
        goto += [name.full_name for name in user.goto(4, 11, follow_imports=True)] == ["acme.helper.load"]
    changed = script.rename(1, 4, new_name="read").get_changed_files()
    seen.append((files, len(found), goto, len(changed)))
    print(f"jedi {jedi.__version__}, used in {files} files: get_references finds {len(found)} of them, goto {goto}; rename changes {len(changed)} files")
assert seen == [(10, 10, 10, 11), (29, 29, 29, 30), (60, 30, 60, 31)], "the behaviour changed"
PY
