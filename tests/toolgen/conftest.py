"""Provides small models, functions of small repositories, and the completion tool."""

import importlib

import pytest
import torch
from scripted_model import BASE, CONTAINER, SHAPES
from tiny_architectures import byte_tokenizer, metaspace_tokenizer, save

from lookuplab import paths
from lookuplab.models import load
from lookuplab.sandbox.server import why_no_namespaces
from lookuplab.toolgen import analysers
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.jedi_tool import JediTool
from lookuplab.toolgen.pairs import add_mark


@pytest.fixture(scope="session")
def bases(tmp_path_factory):
    """Return a folder with three tiny models for fine-tuning: gpt2, t5 and llama."""
    folder = tmp_path_factory.mktemp("bases")
    for architecture in ("gpt2", "t5", "llama"):
        save(folder / architecture, architecture, context=256)
    return folder


STUMBLES = """import os
from lookuplab.toolgen import {module}
from lookuplab.toolgen.{module} import ANALYSER, start

def stumbles(*question):
    if "ended" in repr(question):
        os.abort()
    return {module}.{function}(*question)

def control(root, file):
    return {control}
"""


@pytest.fixture
def end_analyser(tmp_path, monkeypatch):
    """Return ``replace(user, module, function, control)``, which changes an analyser.

    The module ``user`` imports the analyser ``function`` from ``module``. Its replacement aborts
    the worker process if the analysed code has the word "ended". The kit then asks about harmless
    code. If ``control`` is "os.abort()", this question aborts the worker, too.
    """

    def replace(user, module, function, control="0"):
        name = f"ends_{tmp_path.name}"
        code = STUMBLES.format(module=module, function=function, control=control)
        paths.write_lines(tmp_path / "worker" / f"{name}.py", [code])
        monkeypatch.syspath_prepend(tmp_path / "worker")
        monkeypatch.setattr(user, function, importlib.import_module(name).stumbles)

    return replace


@pytest.fixture(params=[False, True])
def contained(request, monkeypatch):
    """Run the analysers' workers in a sandbox or, in a second run of the test, without one. Return
    whether they run in a sandbox.
    """
    if request.param and (reason := why_no_namespaces()):
        pytest.skip(reason)
    monkeypatch.setattr(analysers, "is_contained", lambda _: request.param)
    return request.param


@pytest.fixture(scope="session")
def tool():
    return JediTool(2)


@pytest.fixture(scope="session")
def functions(tmp_path_factory):
    """Return three functions: two from one repository, and one from another."""
    one, other = (tmp_path_factory.mktemp(name) for name in ("one", "other"))
    (one / "base.py").write_text(BASE)
    (one / "container.py").write_text(CONTAINER)
    (other / "shapes.py").write_text(SHAPES)
    return [function for root in (one, other) for function in extract(root).functions]


@pytest.fixture(scope="session", params=["gpt2", "llama"])
def marking_model(request, tmp_path_factory):
    """Return the folder of a random model that writes many marks."""
    folder = tmp_path_factory.mktemp(request.param)
    name = request.param
    made = metaspace_tokenizer() if name == "llama" else byte_tokenizer()
    model = load(str(save(folder, name, made, context=256)))
    mark = add_mark(model.tokenizer, model.module)
    with torch.no_grad():
        row = model.module.get_output_embeddings().weight[mark]
        row.normal_(0, 2, generator=torch.Generator().manual_seed(0))
    for part in (model.module, model.tokenizer):
        part.save_pretrained(folder)
    return folder
