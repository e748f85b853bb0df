"""Names of remote models: what they say, and what is refused. No endpoint is asked."""

import pytest

from lookuplab.errors import UserError
from lookuplab.models.remote import OPENAI, RemoteModel


@pytest.mark.parametrize("name", ["http://host/v1", "http:///v1#m", "ftp://host/v1#m", "openai:",
                                  "http://user:sk-pass@host/v1#m", "http://host/v1?key=sk-pass#m"])
def test_names_that_name_no_endpoint_are_refused_without_repeating_secrets(name):
    with pytest.raises(UserError) as raised:
        RemoteModel.from_name(name)
    assert "sk-pass" not in str(raised.value)


def test_an_unknown_option_is_refused():
    with pytest.raises(UserError, match="unknown option 'dtype'"):
        RemoteModel.from_name("http://host/v1#m", dtype="float16")


def test_identity_tells_address_model_endpoint_kind_and_revision():
    names = [RemoteModel.from_name(name, **options).identity for name, options in [
        ("http://host/v1#m", {}), ("http://host/v1#m&chat", {}), ("http://host/v1#n", {}), ("http://other/v1#m", {}),
        ("http://host/v1#m", {"revision": "2"})]]
    assert len({tuple(sorted(identity.items())) for identity in names}) == 5
    assert RemoteModel.from_name("openai:gpt-4o").identity["endpoint"] == OPENAI
