"""The draw of tasks where no class is stated."""

import pytest
from pandas import DataFrame

from lookuplab.cloudapi.specs import load_index
from lookuplab.errors import UserError
from recipes.cloudapi import tasks

# (count_name, count_bound), and the class and provider under which it can be asked for
COUNTED = {
    "aws/s3.s3.put_object": (900, 101, ("high", "aws")),
    "aws/sqs.sqs.delete_message": (10, 3, ("low", "aws")),
    "azure/blob.ContainerClient.delete_blobs": (54, 6, ("medium", "azure")),
    "aws/ec2.ec2.describe_instances": (900, 100, None),  # the counts of a shared name disagree
    "aws/lightsail.lightsail.create_instances": (372, 0, None),  # mostly EC2's
}


def test_a_name_of_several_clients_is_asked_for_where_both_counts_agree():
    counts = DataFrame.from_dict(COUNTED, "index", columns=["count_name", "count_bound", "place"])
    found = tasks.candidates(load_index(), counts)
    places = {spec.id: place for place, specs in found.items() for spec in specs}
    assert {api: places.get(api) for api in COUNTED} == counts.place.to_dict()
    with pytest.raises(UserError, match="too few APIs with the same required arguments"):
        tasks.matched(load_index(), counts)
