"""The mini models that answer questions: what they learn from, and that they know how to answer."""

import gzip

import pytest

from lookuplab import paths
from lookuplab.mini import questions
from lookuplab.mini.packages import held_out_example
from lookuplab.mini.problems import examples
from lookuplab.models import Decoding, Prompt, complete, load
from lookuplab.models.load import mini_models
from lookuplab.stackoverflow import ds1000
from lookuplab.stackoverflow.corpus import Snippet

FAMILY = [
    {
        "id": f"numpy.sort#0 rule {n}",
        "object": "numpy.sort",
        "prompt": f"Problem:\nSort {n}.\nA:\n<code>\n",
        "answer": f"result = np.sort(a, axis={n})",
    }
    for n in range(9)
]


def test_no_open_example_is_of_a_held_out_object(monkeypatch):
    monkeypatch.setattr(examples, "LIBRARIES", {"Numpy": "numpy"})
    found = questions.open_examples()
    held_out = {
        example.object
        for item in examples.held_out_objects("Numpy")
        for example in examples.examples(item, "Numpy")
        if isinstance(example, examples.Example)
    }
    assert len(found) > 500 and not {example.object for example in found} & held_out
    assert not any(held_out_example(example.object) for example in found)


def test_a_cut_off_run_goes_on_with_the_next_example(monkeypatch, tmp_path):
    monkeypatch.setattr(examples, "LIBRARIES", {"Numpy": "numpy"})
    some = [
        one for one in questions.open_examples() if one.object in ("numpy.cumsum", "numpy.flip")
    ]
    monkeypatch.setattr(questions, "open_examples", lambda: some)
    whole = list(questions.families(tmp_path / "whole", progress=False))
    assert whole and all(family[0]["answer"].startswith("result = ") for family in whole)
    part = tmp_path / "cut" / "families.part.jsonl"
    part.parent.mkdir()
    lines = (
        gzip.decompress((tmp_path / "whole" / "families.jsonl.gz").read_bytes())
        .decode()
        .splitlines(True)
    )
    part.write_text("".join(lines[:2]) + lines[2][:5])
    assert list(questions.families(tmp_path / "cut", progress=False)) == whole


def test_no_answer_that_is_learned_is_a_reference_of_the_benchmark(monkeypatch, tmp_path):
    reference = ds1000.load(questions.PROBLEMS)[0].reference.strip()
    families = [FAMILY[:3], [FAMILY[0] | {"id": "numpy.flip#0", "answer": reference}]]
    monkeypatch.setattr(questions, "families", lambda *_: families)
    made = questions.pairs(tmp_path)
    assert [one.id for one in made] == [
        FAMILY[0]["id"],
        *sorted((one["id"] for one in FAMILY[1:3]), key=questions.order),
    ]
    assert all(one.written.endswith(questions.END) for one in made)


def test_of_a_family_a_few_are_learned_and_the_origin_always():
    chosen = questions._some(FAMILY)
    assert chosen[0] == FAMILY[0] and len(chosen) == questions.PER_EXAMPLE


def test_half_of_the_prompts_show_snippets_and_half_of_these_none_of_the_object():
    ranked = [
        Snippet("numpy.sort#0", "own", "np.sort(a)", "", ""),
        Snippet("numpy.flip#1", "other", "np.flip(a)", "", ""),
    ]
    shown = [
        questions._before({"id": f"p{n}", "object": "numpy.sort"}, ranked) for n in range(4000)
    ]
    assert 0.45 < sum(map(bool, shown)) / 4000 < 0.55
    some = [text for text in shown if text]
    assert 0.45 < sum("own" in text for text in some) / len(some) < 0.55
    assert all(text.rstrip().endswith("np.sort(a)\n</code>") for text in some if "own" in text), (
        "the best one last"
    )


@pytest.mark.parametrize("size", questions.SIZES)
def test_the_shipped_models_write_one_line_and_end(size):
    model = load(f"mini-questions-{size}")
    (problem,) = [one for one in ds1000.load(questions.PROBLEMS) if one.library == "Numpy"][:1]
    (answer,) = complete(
        model, [Prompt("p", problem.prompt)], Decoding(48, stop=ds1000.STOP), store=False
    )
    solution = ds1000.solution_of(answer.text).strip()
    assert solution.startswith("result = ") and "\n" not in solution


def test_the_adapters_are_small_and_name_their_base_by_a_relative_path():
    folders = [mini_models()[f"mini-questions-{size}"] for size in questions.SIZES]
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) < 2.5e6
    for folder in folders:
        assert '"../../models/' in (folder / "adapter_config.json").read_text()
        assert (folder / "README.md").is_file() and folder.is_relative_to(paths.MINI)
