#!/usr/bin/env bash
# boto3 1.34.0 and 1.44.8: minor releases of the AWS SDK remove whole services, so calls that were right no longer exist.
#
# Expected: minor releases of the same major version only add to an SDK. Every client of the older release is in the newer one.
# Seen: 31 of 374 services are gone (QLDB, IoT Analytics, OpsWorks, Lookout for Vision, RoboMaker ...). `boto3.client("qldb")` returns a client in the
# older release and raises UnknownServiceError in the newer one. Both run offline, from data in the package.
# Why it matters: benchmarks of cloud APIs ask whether a model's call exists. The verdict on the same call depends on the SDK's minor version: what was a
# right answer in an older benchmark counts as invented.
# What to do: pin the SDK, and publish its version with the score.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
for version in 1.34.0 1.44.8; do
  python3 -m venv "$place/$version"
  "$place/$version/bin/pip" install --quiet "boto3==$version" "botocore==$version" 2>/dev/null
  "$place/$version/bin/python" - >"$place/$version.json" <<'PY'
import json

import boto3
from botocore.exceptions import UnknownServiceError

session = boto3.session.Session(region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
try:
    made = len(dir(session.client("qldb"))) > 0
except UnknownServiceError:
    made = False
print(json.dumps([session.get_available_services(), made]))
PY
done
python3 - "$place" <<'PY'
import json
import sys

(old, made), (new, still) = (json.load(open(f"{sys.argv[1]}/{version}.json")) for version in ("1.34.0", "1.44.8"))
gone = sorted(set(old) - set(new))
print(f"boto3 1.34.0 has {len(old)} services, 1.44.8 has {len(new)}; gone: {len(gone)}: {' '.join(gone)}")
print(f'client("qldb") exists: {made}, {still}')
assert len(gone) == 31 and made and not still, "the behaviour changed"
PY
