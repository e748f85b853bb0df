"""Tests the committed index of the clouds, and the flags that depend on all APIs in the index."""

from collections import Counter
from dataclasses import replace

from lookuplab.cloudapi.specs import load_index
from recipes.cloudapi.reading import flagged


def test_the_index_has_every_operation_of_every_service_but_the_two_that_boto3_removes():
    found = Counter(spec.provider for spec in load_index().specs if spec.operation)
    assert found == {"aws": 15_425 - 2, "azure": 1_631}


def test_flags_of_names_that_do_not_tell_the_api_are_those_of_the_index():
    specs = load_index().specs
    kinds = {"generic_name", "shared_name"}
    bare = [replace(spec, flags=tuple(sorted({*spec.flags} - kinds))) for spec in specs]
    assert bare != flagged(bare) == [*specs]
