"""The grader's environment made for real by pip, from packages written here: whole, partial, broken, unknown."""

import hashlib
import subprocess
import zipfile

import pytest

from lookuplab import paths
from lookuplab.errors import UserError
from lookuplab.stackoverflow import environment


def wheel(folder, name, version="1.0", source="value = 1\n"):
    """A package of one module, as pip installs it."""
    note = f"{name}-{version}.dist-info"
    files = {f"{name}/__init__.py": source,
             f"{note}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{note}/WHEEL": "Wheel-Version: 1.0\nGenerator: here\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "".join(f"{file},,\n" for file in [*files, f"{note}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for file, text in (files | {f"{note}/RECORD": record}).items():
            archive.writestr(file, text)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(data folder, downloads) with an environment `tiny` of the packages first_one and second."""
    root = tmp_path_factory.mktemp("with space")
    (root / "wheels").mkdir()
    for name in ("first_one", "second"):
        wheel(root / "wheels", name)
    (root / "tiny.txt").write_text("# pins\nfirst_one==1.0\n# what these need\nSecond==1.0\n")
    with pytest.MonkeyPatch.context() as patch:
        offline(patch, root)
        environment.get("tiny")
    return root


def offline(patch, root):
    patch.setattr(paths, "DATA", root)
    patch.setattr(paths, "DOWNLOADS", root / "downloads")
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", (root / "wheels").as_uri()), ("PIP_CONFIG_FILE", "")):
        patch.setenv(name, value)


@pytest.fixture
def tiny(made, monkeypatch):
    offline(monkeypatch, made)
    return environment.folder("tiny")


def site(venv):
    return next((venv / "lib").glob("python3*/site-packages"))


def test_it_is_complete_and_its_python_imports_what_is_pinned(tiny):
    python = environment.environment("tiny")
    assert environment.defect("tiny") == "" and python == tiny / "bin" / "python"
    done = subprocess.run([python, "-c", "import first_one, second; print(first_one.value)"], capture_output=True)
    assert done.stdout == b"1\n"


def test_a_package_that_is_gone_is_named_with_the_command_that_brings_it_back(tiny):
    (site(tiny) / "first_one" / "__init__.py").unlink()
    (site(tiny) / "first_one").rename(site(tiny) / "elsewhere")
    with pytest.raises(UserError, match=r"tiny is incomplete: first_one==1\.0 missing.*`lookuplab data get tiny`"):
        environment.environment("tiny")
    environment.get("tiny")
    assert environment.defect("tiny") == ""


def test_a_package_that_does_not_import_is_named_and_installed_anew(tiny, capsys):
    (site(tiny) / "first_one" / "__init__.py").write_text("import gone_away\n")
    environment.get("tiny")
    assert "first_one==1.0 is there and does not import (ModuleNotFoundError: No module named 'gone_away')" \
        in capsys.readouterr().out
    assert (site(tiny) / "first_one" / "__init__.py").read_text() == "value = 1\n"


def test_other_pins_than_those_imported_are_incomplete_and_only_they_are_installed(tiny, made):
    wheel(made / "wheels", "second", "1.1")
    (made / "tiny.txt").write_text("first_one==1.0\n# what these need\nsecond==1.1\n")
    assert environment.defect("tiny") == "second==1.1 missing, or of another version"
    untouched = (site(tiny) / "first_one" / "__init__.py").stat().st_mtime_ns
    environment.get("tiny")
    assert environment.defect("tiny") == ""
    assert (site(tiny) / "first_one" / "__init__.py").stat().st_mtime_ns == untouched


def test_an_install_that_fails_says_what_pip_said_and_leaves_it_incomplete(tiny, made):
    whole = (made / "tiny.txt").read_text()
    (made / "tiny.txt").write_text(whole + "no-such-package==9\n")
    with pytest.raises(UserError, match=r"pip failed: ERROR: No matching distribution found for no-such-package==9"):
        environment.get("tiny")
    assert "no-such-package==9 missing" in environment.defect("tiny")
    (made / "tiny.txt").write_text(whole)
    assert environment.defect("tiny") == ""


def test_a_python_by_its_path_is_taken_as_it_is_and_other_names_are_unknown(tiny):
    python = tiny / "bin" / "python"
    assert environment.environment(str(python)) == python
    with pytest.raises(UserError, match="no grader environment 'absent': neither a Python's path nor absent.txt"):
        environment.environment("absent")


def test_what_is_not_there_at_all_is_incomplete(tiny, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "DOWNLOADS", tmp_path)
    with pytest.raises(UserError, match="there is no Python at .*tiny/venv; run `lookuplab data get tiny`"):
        environment.environment("tiny")


def test_the_identity_is_that_of_the_versions(tiny):
    first = environment.identity(tiny / "bin" / "python")
    assert first == environment.identity(tiny / "bin" / "python") and len(first) == len(hashlib.sha256().hexdigest())
    note = next(site(tiny).glob("first_one-*"))
    text = (note / "METADATA").read_text()
    (note / "METADATA").write_text(text.replace("1.0", "1.5"))
    assert environment.identity(tiny / "bin" / "python") != first
    (note / "METADATA").write_text(text)


def test_the_committed_pins_are_exact_and_those_of_the_published_count():
    direct, rest = environment.pins()
    assert all(pin.count("==") == 1 for pin in direct + rest)
    assert {"numpy==1.26.4", "pandas==1.5.3", "scipy==1.12.0", "scikit-learn==1.4.0", "tensorflow-cpu==2.16.1",
            "torch==2.13.0", "matplotlib==3.8.4"} <= set(direct)
