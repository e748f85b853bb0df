"""The committed index against botocore and the Azure packages, and the builder that made it."""

import sys
from collections import Counter
from dataclasses import replace

import pytest

from lookuplab.cloudapi.specs import load_documentation, load_index, texts_of
from recipes.cloudapi import sdks
from recipes.cloudapi.reading import flagged, to_json

# small and special ones
SAMPLE = """
    aws/cognito-sync aws/sqs aws/logs aws/lexv2-runtime
    azure/blob azure/callautomation azure/storage
"""


def test_the_index_has_every_operation_of_every_service_but_the_two_that_boto3_removes():
    found = Counter(spec.provider for spec in load_index().specs if spec.operation)
    assert found == {"aws": 15_425 - 2, "azure": 1_631}
    services = {spec.service for spec in load_index().specs}
    assert services == {*sdks.session().get_available_services(), *sdks.AZURE}


@pytest.mark.parametrize("place", SAMPLE.split())
def test_a_fresh_reading_equals_the_index(place):
    """But for the flags that only the whole index knows."""
    found = [*sdks.part(*place.split("/"))]
    kept = load_index().by_id
    for spec, page in found:
        flags = set(kept[spec.id].flags) - {"generic_name", "shared_name"}
        assert to_json(spec) | {"flags": flags} == to_json(kept[spec.id]) | {"flags": {*spec.flags}}
        assert page == load_documentation().get(spec.id, "")
    assert len(found) == sum(name.startswith(f"{place}.") for name in kept)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the texts hold repr() of Python 3.11")
def test_the_examples_are_the_first_that_botocore_has_of_each_operation():
    assert texts_of("example", load_index()) == dict(sdks.aws_examples())


def test_flags_of_names_that_do_not_tell_the_api_are_those_of_the_index():
    specs = load_index().specs
    kinds = {"generic_name", "shared_name"}
    bare = [replace(spec, flags=tuple(sorted({*spec.flags} - kinds))) for spec in specs]
    assert bare != flagged(bare) == [*specs]
