#!/usr/bin/env bash
# boto3 1.44.8, botocore 1.44.8: the check of arguments refuses a value below the minimum, but accepts any above the maximum and any unknown enum value.
#
# Expected: boto3 checks each call's arguments against the service's model before it sends them. The model states minimum, maximum, pattern and enum.
# Seen: list_tables(Limit=0) and a table's name of two letters raise ParamValidationError. Limit=1000 (the maximum is 100) is accepted, as are a name with
# blanks, the unknown ACL "publik" and the unknown launch type "ROCKET". A time "May" is accepted, too: it is the current day of this year's May.
# Why it matters: a benchmark of API calls without an account judges a generated call by this check, with botocore's Stubber. Invalid calls then count as
# valid, but not evenly: a number too small is an error, a number too large is none. Rates of hallucination are too low, above all for enum values.
# What to do: compare with the members' `enum` and `metadata` in `client.meta.service_model`.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet boto3==1.44.8 botocore==1.44.8 2>/dev/null
"$place/venv/bin/python" - <<'PY'
import boto3
import botocore
from botocore.exceptions import ParamValidationError
from botocore.stub import Stubber

CALLS = [
    ("dynamodb", "list_tables", {"Limit": 0}, False),
    ("dynamodb", "list_tables", {"Limit": 1000}, True),
    ("dynamodb", "list_tables", {"ExclusiveStartTableName": "ab"}, False),
    ("dynamodb", "list_tables", {"ExclusiveStartTableName": "no blanks, please"}, True),
    ("s3", "create_bucket", {"Bucket": "data", "ACL": "publik"}, True),
    ("ecs", "list_tasks", {"launchType": "ROCKET"}, True),
    ("cloudwatch", "get_metric_statistics", {"Namespace": "a", "MetricName": "b", "StartTime": "May", "EndTime": "May", "Period": 60}, True),
]
print("boto3", boto3.__version__, "botocore", botocore.__version__)
for service, method, arguments, wanted in CALLS:
    client = boto3.client(service, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method]).input_shape.members
    with Stubber(client) as stubber:
        stubber.add_response(method, {})
        try:
            getattr(client, method)(**arguments)
            accepted = True
        except ParamValidationError:
            accepted = False
    name = next(name for name in reversed(arguments) if name != "Period")
    limits = {key: model[name].metadata[key] for key in ("min", "max", "pattern", "enum") if key in model[name].metadata}
    print(f"{service}.{method} {name}={arguments[name]!r}: {'accepted' if accepted else 'refused'}, model {limits}")
    assert accepted == wanted, "the behaviour changed"
PY
