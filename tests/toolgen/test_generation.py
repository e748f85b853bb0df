"""Generation with real Jedi on little repositories: Figure 4, equality with plain decoding, the store, bad input."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from scripted_model import END, scripted
from tiny_architectures import byte_tokenizer, metaspace_tokenizer, save
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from lookuplab.errors import UserError
from lookuplab.models.local import load_local
from lookuplab.models.store import CompletionStore
from lookuplab.models.types import Decoding
from lookuplab.toolgen.caret import suggestions, unsaved
from lookuplab.toolgen.files import Repository
from lookuplab.toolgen.filters import Filters
from lookuplab.toolgen.functions import extract
from lookuplab.toolgen.generation import ToolModel, check_suggestions, generate
from lookuplab.toolgen.jedi_tool import Answer, JediTool, Worker
from lookuplab.toolgen.marking import MARK
from lookuplab.toolgen.pairs import add_mark, prompt_text
from lookuplab.toolgen.tool_use import ToolUse
from lookuplab.toolgen.trace import trace

BASE = '''
class Base:
    def __init__(self):
        self._registered_updates = set()
        self.name = "base"
'''
CONTAINER = '''from base import Base


class Container(Base):
    def register_updates(self, *updates):
        """Register the given updates."""
        return None if updates else self

    @property
    def label(self):
        """Name of this container."""
        label = self.name
        return label
'''
SHAPES = '''def area(width, height):
    """Area of a rectangle."""
    total = width * height
    return total
'''


@pytest.fixture(scope="module")
def tool():
    with JediTool(2) as tool:
        yield tool


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """register_updates and label of one repository, area of another."""
    one, other = (tmp_path_factory.mktemp(name) for name in ("one", "other"))
    (one / "base.py").write_text(BASE)
    (one / "container.py").write_text(CONTAINER)
    (other / "shapes.py").write_text(SHAPES)
    return [function for root in (one, other) for function in extract(Repository(root.name, root), Filters()).functions]


def prompt_of(function):
    return prompt_text(function, "decoder")


def wants(*texts):
    """A script in which the model wants these tokens, one a step."""
    return [{text: 0.8} if isinstance(text, str) else text for text in texts]


def test_figure_4_is_written_with_jedi_s_names_where_the_model_prefers_invented_ones(tmp_path, functions, tool):
    invented = {"_updates": 0.7, "_registered_updates": 0.2}
    script = wants("    ", "for ", "update ", "in ", MARK, {"changes": 0.7, "updates": 0.2}, ":\n", "        ", "self",
                   ".", MARK, invented, ".", MARK, {"append": 0.7, "add": 0.2}, "(", MARK,
                   {"change": 0.7, "update": 0.2}, ")", END)
    model = scripted(tmp_path, script=script, prompt=prompt_of(functions[0]))
    done = generate(model, functions[:1], tool, store=False)
    assert done[0].prediction == "    for update in updates:\n        self._registered_updates.add(update)"
    assert [call.chosen for call in done[0].calls] == ["updates", "_registered_updates", "add", "update"]
    assert done[0].calls[1].before == "    for update in updates:\n        self."
    assert done.outcomes == {"answered": 4} and not check_suggestions(done, tool, progress=False)
    free = generate(model, functions[:1], tool, ToolUse("dot"), store=False)
    assert free[0].completion.token_ids != done[0].completion.token_ids


def test_a_name_that_jedi_did_not_offer_is_an_exception(tmp_path, functions, tool):
    model = scripted(tmp_path, script=wants("    ", "self", ".", "name", END), prompt=prompt_of(functions[0]))
    done = generate(model, functions[:1], tool, ToolUse("dot"), store=False)
    assert not check_suggestions(done, tool, progress=False)
    done[0] = replace(done[0], calls=(replace(done[0].calls[0], chosen="nothere"),))
    assert [found.call.chosen for found in check_suggestions(done, tool, progress=False)] == ["nothere"]


def test_a_question_that_is_lost_twice_ends_the_run_and_an_error_of_jedi_s_leaves_the_row_free(tmp_path, functions,
                                                                                             monkeypatch):
    model = scripted(tmp_path, script=wants("    ", "self", ".", MARK, "nothere", END), prompt=prompt_of(functions[0]))
    with JediTool(1, time_limit=1e-4) as hurried, pytest.raises(UserError, match="timed out twice"):
        generate(model, functions[:1], hurried, store=False)
    monkeypatch.setattr(Worker, "complete", lambda *_: Answer(failure="error in Jedi: KeyError"))
    with JediTool(1) as failing:
        done = generate(model, functions[:1], failing, store=False)
    assert done[0].prediction == "    self.nothere" and done.outcomes == {"error in Jedi: KeyError": 1}


ARCHITECTURES = [("gpt2", byte_tokenizer), ("llama", metaspace_tokenizer), ("t5", byte_tokenizer)]


@pytest.fixture(scope="module", params=ARCHITECTURES, ids=[name for name, _ in ARCHITECTURES])
def marking_model(request, tmp_path_factory):
    """The folder of a random model that writes many marks."""
    name, tokenizer = request.param
    folder = save(tmp_path_factory.mktemp(name), name, tokenizer(), context=256)
    kind = AutoModelForSeq2SeqLM if name == "t5" else AutoModelForCausalLM
    model, tokenizer = kind.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    mark = add_mark(tokenizer, model)
    with torch.no_grad():
        model.get_output_embeddings().weight[mark].normal_(0, 2, generator=torch.Generator().manual_seed(0))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def eight(functions):
    """Eight functions with prompts of different length."""
    return [replace(function, id=f"{function.id} {i}", docstring=" ".join([function.docstring] * (i + 1)))
            for i, function in enumerate((functions * 3)[:8])]


def plain_greedy(module, ids, mark, steps):
    """A full forward pass a token, the mark left out."""
    answer, end = [], module.generation_config.eos_token_id
    while len(answer) < steps and end not in answer:
        if module.config.is_encoder_decoder:
            start = [module.config.decoder_start_token_id]
            logits = module(input_ids=ids, decoder_input_ids=torch.tensor([start + answer])).logits[0, -1]
        else:
            logits = module(input_ids=torch.cat([ids, torch.tensor([answer], dtype=torch.long)], 1)).logits[0, -1]
        logits[mark] = -torch.inf
        answer.append(logits.argmax().item())
    return answer


def test_with_marks_disabled_decoding_is_plain_greedy_generation(marking_model, functions, tool):
    """At batch size 1 and 8, with a cache (ours, Transformers') and without."""
    asked, decoding = eight(functions), Decoding(max_new_tokens=16)
    one, full = (load_local(str(marking_model), batch_size=size) for size in (1, 8))
    answers = [generate(model, asked, tool, use, decoding, store=False, progress=False)
               for model, use in ((one, ToolUse(gate=1.5)), (full, ToolUse(gate=1.5)), (full, ToolUse(None)))]
    tooled, module = ToolModel(one, asked, tool), one.module
    mark = tooled.vocabulary.mark
    with torch.inference_mode():
        for i, prompt in enumerate(tooled.prompts()):
            ids = one.tokenizer(prompt.text, return_tensors="pt")["input_ids"]
            expected = plain_greedy(module, ids, mark, 16)
            theirs = module.generate(ids, max_new_tokens=16, do_sample=False, suppress_tokens=[mark])[0].tolist()
            assert theirs[1 if module.config.is_encoder_decoder else ids.shape[1]:] == expected
            assert [list(done[i].completion.token_ids) for done in answers] == [expected] * 3
    assert not any(done.calls for done in answers[0])


@pytest.mark.parametrize("use", [ToolUse(), ToolUse(variant="package", gate=0)], ids=["paper", "package"])
def test_rows_of_different_repositories_share_a_batch_and_choose_what_is_offered(marking_model, functions, tool, use):
    asked, decoding = eight(functions)[:5], Decoding(max_new_tokens=24)
    together, alone = (generate(load_local(str(marking_model), batch_size=size), asked, tool, use, decoding,
                                store=False, progress=False) for size in (5, 1))
    assert [done.completion.token_ids for done in together] == [done.completion.token_ids for done in alone]
    assert together.outcomes == alone.outcomes and together.outcomes["answered"] > 3
    assert not check_suggestions(together, tool, progress=False)
    assert sum(bool(call.chosen) for done in together for call in done.calls) > 3


def test_every_beam_is_held_to_what_is_offered_behind_its_own_text(marking_model, functions, tool):
    model = load_local(str(marking_model), batch_size=8)
    done = generate(model, functions, tool, ToolUse(ends="break"), Decoding(max_new_tokens=12, beams=3), store=False)
    assert any(one.calls for one in done) and not check_suggestions(done, tool, progress=False)


def test_a_question_that_was_answered_is_not_asked_again(tmp_path, functions):
    model = scripted(tmp_path, script=wants("    ", "self", ".", MARK, "label", END), prompt=prompt_of(functions[0]))
    with JediTool(1) as one:
        first = generate(model, functions[:1], one, store=False)
        one.workers[0].complete = None  # asked now, it would fail
        assert generate(model, functions[:1], one, store=False)[0] == first[0]


def test_a_second_run_takes_all_from_the_store_until_the_repository_changes(tmp_path, tool):
    root = tmp_path / "repository"
    root.mkdir()
    (root / "container.py").write_text(CONTAINER.replace("from base import Base", BASE))
    one = extract(Repository("one", root), Filters()).functions[0]
    script = wants("    ", "self", ".", MARK, {"name": 0.6, "_registered_updates": 0.3}, END)
    model = scripted(tmp_path / "model", script=script, prompt=prompt_of(one))
    with CompletionStore(":memory:") as store:
        first = generate(model, [one], tool, store=store)
        again = generate(model, [one], tool, store=store)
        assert (first[0].prediction, again.outcomes, again[0]) == ("    self.name", {}, first[0])
        (root / "container.py").write_text((root / "container.py").read_text().replace("self.name", "self.title"))
        changed = generate(model, [one], tool, store=store)
        assert changed[0].prediction == "    self._registered_updates" and changed.outcomes == {"answered": 1}


def test_the_same_prompt_in_two_places_has_two_answers(tmp_path, tool):
    found = []
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(f"{name} = 1\n\n\ndef get():\n    \"\"\"Get the value there.\"\"\"\n"
                                              f"    value = {name}\n    return value\n")
        found += extract(Repository(name, tmp_path / name), Filters()).functions
    script = wants("    ", "return ", MARK, {"left": 0.4, "right": 0.3}, END)
    model = scripted(tmp_path / "model", script=script, prompt=prompt_of(found[0]))
    with CompletionStore(":memory:") as store:
        done = generate(model, found, tool, store=store)
    assert [one.prediction for one in done] == ["    return left", "    return right"]


def test_a_docstring_that_overflows_the_context_is_left_out_and_the_run_goes_on(tmp_path, functions, tool):
    model = scripted(tmp_path, {"\n": {END: 0.9}}, context=120)
    long = replace(functions[0], docstring="word " * 100)
    done = generate(model, [long, functions[1]], tool, store=False)
    assert (done[0].prediction, done[0].completion) == ("", None)
    assert done[0].failure == "prompt has 549 tokens, the model's context is 120"
    assert done[1].completion.finish_reason == "eos" and not done[1].failure


def test_a_model_without_a_mark_is_refused_unless_dots_are_the_trigger(tmp_path, functions, tool):
    model = scripted(tmp_path, {"\n": {END: 0.9}}, mark=False)
    with pytest.raises(UserError, match="no mark in its vocabulary"):
        ToolModel(model, functions, tool)
    assert generate(model, functions, tool, ToolUse("dot"), store=False)[0].completion.finish_reason == "eos"


def test_a_body_is_inserted_behind_signature_and_docstring_and_the_caret_follows_it(functions):
    lines = CONTAINER.splitlines(keepends=True)
    text, line, column = unsaved(lines, functions[1], "    label = self.name\n    return self.", "decoder")
    above, below = CONTAINER.split("        label = self.name\n        return label\n")
    assert text == above + "        label = self.name\n        return self._\n" + below
    assert text.split("\n")[line - 1][:column] == "        return self."
    assert unsaved(lines, functions[1], "    a", "decoder", "package")[0] == above + "        a\n" + below


@pytest.mark.parametrize(("written", "inserted", "caret"), [
    ("def la", "    def la", "    def la"),
    ("", "    ", "    "),
    ("def label(self):\n    return self.",
     '    def label(self):\n        """Name of this container."""\n        return self.', "        return self."),
    ("def other(self, a):\n    return a.", "    def other(self, a):\n        return a.", "        return a.")])
def test_a_definition_stands_in_the_place_of_the_function(functions, written, inserted, caret):
    text, line, column = unsaved(CONTAINER.splitlines(keepends=True), functions[1], written, "encoder-decoder")
    above = CONTAINER.partition("    def label")[0]
    assert text == above + inserted + "_\n"
    assert text.split("\n")[line - 1][:column] == caret


def test_suggestions_are_identifiers_without_keywords_and_dunders_of_marks(functions):
    answer = Answer(("if", "alpha=", "__init__", "__x", "'key'", "len", "match"))
    assert suggestions(answer) == ("alpha", "__x", "len", "match")
    assert suggestions(answer, "dot") == ("alpha", "__init__", "__x", "len", "match")


def test_a_trace_shows_marks_suggestions_and_what_the_trie_allowed(tmp_path, functions, tool):
    script = wants("    ", "self", ".", MARK, {"label": 0.6, "_registered": 0.3}, {"x": 0.9}, {"x": 0.9}, END)
    model = scripted(tmp_path, script=script, prompt=prompt_of(functions[0]), pieces=["register", "_", "updates"])
    steps = trace(model, functions[0], tool, ToolUse(ends="break"))
    assert [step.text for step in steps] == ["    ", "self", ".", "", "label", "", ]
    assert [step.mark for step in steps] == [False, False, False, True, False, False]
    assert set(steps[3].offered) == {"label", "name", "register_updates", "_registered_updates"} and steps[3].asked
    assert set(steps[4].allowed) == {"label", "n", "register", "_registered"} and not steps[4].may_end
    assert steps[5].allowed == () and steps[5].may_end
    assert steps[4].probability == pytest.approx(0.6) and [step.forced for step in steps] == [False] * 6


def test_a_list_of_generations_counts_what_came_of_the_calls(tmp_path, functions, tool):
    script = wants("    ", "nothere", ".", MARK, "x", END)
    model = scripted(tmp_path, script=script, prompt=prompt_of(functions[0]))
    done = generate(model, functions[:1], tool, store=False)
    assert done.outcomes == Counter({"no suggestions": 1}) and done[0].prediction == "    nothere.x"
