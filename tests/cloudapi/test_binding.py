"""Which arguments a call shows, and whether they bind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookuplab.cloudapi.binding import AUTOFILLED, CallError, bind_error, closed_bind_error, parse_call
from lookuplab.cloudapi.sdks import session
from lookuplab.cloudapi.specs import ApiSpec, Parameter, load_index

COPY = ApiSpec("azure", "blob", "BlobClient", "copy", (
    Parameter("url", "POSITIONAL_OR_KEYWORD", True), Parameter("metadata", "POSITIONAL_OR_KEYWORD"),
    Parameter("kwargs", "VAR_KEYWORD"),
), documented=("lease",))
ANY = (Parameter("args", "VAR_POSITIONAL"), Parameter("kwargs", "VAR_KEYWORD"))
OVERLOADED = ApiSpec("azure", "x", "C", "begin", ANY, overloads=(
    (Parameter("body", "POSITIONAL_OR_KEYWORD", True), Parameter("kwargs", "VAR_KEYWORD")),
    (Parameter("url", "KEYWORD_ONLY", True), Parameter("kwargs", "VAR_KEYWORD")),
), flags=("open_signature",))
EXPORT = ApiSpec("aws", "logs", "logs", "create_export_task", (
    Parameter("from", "KEYWORD_ONLY", True), Parameter("to", "KEYWORD_ONLY", True),
), flags=("keyword_argument",))


@pytest.mark.parametrize(("call", "positional", "keywords", "unresolved"), [
    ("f()", 0, (), False),
    ("f(1, a=2)", 1, ("a",), False),
    ("f(*[1, (2, 3)], **{'a': 1, 'b': 2})", 2, ("a", "b"), False),
    ("f(*(1, *[2, 3]), **{'a': 1, **{'b': 2}, 'a': 3})", 3, ("a", "b"), False),
    ("f(1, *more, a=2, **options)", 1, ("a",), True),
    ("f(**{name: 1, 'a': 2, **rest})", 0, ("a",), True),
    ("f(x for x in y)", 1, (), False),
])
def test_literal_splats_are_expanded_and_others_are_flagged(call, positional, keywords, unresolved):
    found = parse_call(call)
    assert (found.positional, found.keywords, found.unresolved) == (positional, keywords, unresolved)


@pytest.mark.parametrize("call", [
    "f(a=1, a=2)", "f(a=1, **{'a': 2})", "f(**{1: 2})", "f(**'ab')", "f(a b)", "f(,)", "f(a=1, 2)", "f(\0)", "f()()",
    "f[0](a=1)", "f(await g())", "f(" + "(" * 300 + ")" * 300 + ")",
])
def test_what_python_would_not_run_is_an_error(call):
    with pytest.raises(CallError):
        parse_call(call)


@given(st.text())
def test_any_text_between_the_parentheses_parses_or_is_an_error(text):
    try:
        assert parse_call(f"f({text})").name == "f"
    except CallError as error:
        assert str(error)


@pytest.mark.parametrize(("call", "is_open", "is_closed"), [
    ("copy('u')", True, True), ("copy(url='u', metadata={})", True, True), ("copy()", False, False),
    ("copy('u', {}, 1)", False, False), ("copy('u', url='u')", False, False),
    ("copy('u', lease=1)", True, True), ("copy('u', retry_total=1)", True, True), ("copy('u', bogus=1)", True, False),
])
def test_open_binding_takes_any_keyword_and_closed_binding_only_known_ones(call, is_open, is_closed):
    arguments = parse_call(call)
    assert (bind_error(COPY, arguments) is None, closed_bind_error(COPY, arguments) is None) == (is_open, is_closed)


@pytest.mark.parametrize(("call", "is_closed"), [
    ("begin()", False), ("begin({})", True), ("begin(url=1)", True), ("begin({}, url=1)", False),
    ("begin(url=1, timeout=2)", True), ("begin(url=1, bogus=2)", False),
])
def test_closed_binding_needs_one_overload_that_binds(call, is_closed):
    arguments = parse_call(call)
    assert bind_error(OVERLOADED, arguments) is None
    assert (closed_bind_error(OVERLOADED, arguments) is None) == is_closed


@pytest.mark.parametrize(("call", "binds"), [
    ("create_export_task(fromTime=1, to=2)", True), ("create_export_task(**{'from': 1, 'to': 2})", True),
    ("create_export_task(**{'from': 1, 'fromTime': 1, 'to': 2})", False), ("create_export_task(to=2)", False),
])
def test_botocores_documented_alias_stands_for_the_modelled_name(call, binds):
    assert (bind_error(EXPORT, parse_call(call)) is None) == binds


@pytest.mark.parametrize("service", ["athena", "glacier", "ssm-contacts", "servicecatalog", "mturk"])
def test_exactly_the_members_that_botocore_fills_in_may_be_missing(service):
    client = session().client(service)
    for spec in load_index().methods("aws", service).values():
        if "autofilled" in spec.flags:
            model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[spec.name])
            filled = set(model.idempotent_members) | ({"accountId"} if service == "glacier" else set())
            assert set(spec.required) & AUTOFILLED == set(spec.required) & filled, spec.id


def test_every_specification_of_the_committed_index_makes_a_stub():
    for spec in load_index().specs:
        named = ", ".join(f"**{{{p.name!r}: 1}}" for p in spec.parameters if p.required and p.kind != "POSITIONAL_ONLY")
        first = ", ".join("1" for p in spec.parameters if p.required and p.kind == "POSITIONAL_ONLY")
        call = parse_call(f"{spec.name}({', '.join(filter(None, [first, named]))})")
        assert bind_error(spec, call) is None, spec.id
