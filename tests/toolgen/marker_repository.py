"""Provides a harmless repository in which every file that Python runs leaves a mark."""

import json
import subprocess
import sys

from lookuplab.paths import write_text

# When this code runs, it leaves a mark: it writes a file. In a sandbox it cannot write, so it ends
# the process instead. The question to this process then has no answer, which a test notices.
RUNS = """import os
try:
    open({!r}, "w").close()
except OSError:
    os._exit(1)
"""
MODULES = """main conftest setup sitecustomize usercustomize json types numpy plug package/__init__
 package/part package/conftest package/json docs/conf namespace/part""".split()
USES = '''import conftest, setup, sitecustomize, numpy, plug, namespace.part, package.part
from package import *


def use():
    """Say what it is."""
    plug.no_such_name, package.part.no_such_name, namespace.part.value
    return plug.value
'''
IMPORT = """import os, sys
*parents, name = {names!r}
sys.path.insert(0, ".")
for parent in parents:
    __import__(parent)
if os.path.exists({marker!r}):
    os.remove({marker!r})
sys.modules.pop(name, None)
__import__(name)"""
PYLINT = """import sys
from pylint import run_pylint
sys.path.append(".")
run_pylint(["--rcfile", {file!r}, "user.py"])"""
PYTEST = """import pytest
pytest.main(["-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider", "."])"""
# {file: code that makes Python run this file, unless something prevents it}
WAYS = {
    "__main__.py": "import runpy; runpy.run_path('.')",
    "x.pth": "import site; site.addsitedir('.')",
    "thing.egg/egged.py": "import sys; sys.path.insert(0, 'thing.egg'); import egged",
    "thing.egg-info/entry_points.txt": "import sys; from importlib import metadata\n"
    "sys.path.append('.'); [one.load() for one in metadata.distribution('thing').entry_points]",
    **dict.fromkeys(["pylintrc", ".pylintrc", "pyproject.toml"], PYLINT),
    "venv/bin/python": "import os; os.execv('venv/bin/python', ['python'])",
    **{f"{name}.py": IMPORT for name in ("json", "package/part", "namespace/part")},
    "conftest.py": PYTEST,
}


def build(root, marker):
    """Write the repository. Each file of the repository writes the file ``marker`` if it is run."""
    runs = RUNS.format(str(marker))
    hook = f"exec({runs!r})"
    plugin = "[MAIN]\nload-plugins=plug\n"
    files = {f"{name}.py": runs + "value = 1\n" for name in MODULES} | {
        "user.py": USES,
        "__main__.py": runs,
        "x.pth": f"import os; {hook}\n",
        "thing.egg/egged.py": runs,
        "thing.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: thing\nVersion: 1\n",
        "thing.egg-info/entry_points.txt": "[pytest11]\nthing = plug\n",
        "pylintrc": plugin,
        "package/.pylintrc": plugin,
        ".pylintrc": f"[MAIN]\ninit-hook={hook}\n",
        "setup.cfg": f"[pylint.MAIN]\ninit-hook={hook}\n",
        "tox.ini": f"[pylint.MAIN]\ninit-hook={hook}\n",
        "pyproject.toml": f"[tool.pylint.main]\ninit-hook = {json.dumps(hook)}\n",
        "venv/pyvenv.cfg": "home = .\n",
        "venv/bin/python": f"#!/usr/bin/env python3\n{runs}",
    }
    for name, text in files.items():
        write_text(root / name, text)
    (root / "venv/bin/python").chmod(0o755)


def run(root, file, marker):
    """Let Python run one file of the repository. Nothing prevents it. Return what Python prints."""
    parts = file.removesuffix(".py").split("/")
    names = [".".join(parts[: at + 1]) for at in range(len(parts))]
    code = WAYS[file].format(file=file, names=names, marker=str(marker))
    call = [sys.executable, "-P", "-c", code]
    done = subprocess.run(call, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode()
