"""Compares our judgements of completions with what the real SDKs do. Each API is called in sixty
forms (``forms.yaml``). A form says where the first call of the completion ends. Whether the call is
valid is decided by the SDK.

No network is needed. An event handler answers botocore's request before it is sent. For Azure, the
arguments are bound to the method's signature.
"""

import importlib
import inspect
import re
from collections import defaultdict
from functools import partial
from unittest.mock import MagicMock

import boto3
import pytest
from beside import table
from botocore.exceptions import ParamValidationError

from lookuplab.cloudapi.specs import load_index
from lookuplab.cloudapi.validity import judge_call

AWS_APIS = """
    kms.encrypt s3.put_object s3.list_objects_v2 s3.upload_file ec2.describe_instances
    kms.list_keys ec2.describe_hosts athena.stop_query_execution glacier.create_vault
    rds.generate_db_auth_token logs.create_export_task athena.delete_named_query
    glacier.upload_archive servicecatalog.copy_product servicecatalog.provision_product
    servicecatalog.terminate_provisioned_product servicecatalog.update_provisioned_product
    servicecatalog.execute_provisioned_product_service_action
""".split()
AZURE_APIS = """
    blob.BlobClient.set_blob_metadata
    blob.BlobServiceClient.delete_container
    secrets.SecretClient.set_secret
    cosmos.ContainerProxy.create_item
    cosmos.ContainerProxy.query_items
    textanalytics.TextAnalyticsClient.analyze_sentiment
    callautomation.CallConnectionClient.send_dtmf_tones
    computervision.ComputerVisionClient.analyze_image
    eventhub.EventHubProducerClient.send_batch
    blob.ContainerClient.delete_blobs
""".split()
# {form: (first call, rest of the completion)}; the first call is None if it is incomplete
FORMS = table(__file__, "forms.yaml")


def forms(name, required, optional, other):
    """Return FORMS with a real API filled in. ``name`` is the API, ``required`` and ``optional``
    are its arguments' names, and ``other`` is another method of the client.
    """
    arguments = [f'{argument}="my-value", ' for argument in required]
    given = "".join(arguments)
    call = f"{name}({given})"
    fields = {
        "name": name,
        "upper": name.upper(),
        "other": other,
        "call": call,
        "given": given,
        "option": f'{optional[0]}="x"' if optional else "",
        "first": [*required, *optional, "data"][0],
        "others": "".join(arguments[1:]),
        "but_last": "".join(arguments[:-1]),
        "lines": "\n    ".join(arguments),
        "spread": "\r\n\t".join(arguments).replace("=", " = "),
        "pairs": ", ".join(f"{one!r}: 1" for one in required),
        "ones": ", ".join("1" * len(required)),
        "numbers": ", ".join(map(str, range(40))),
        "swapped": given.swapcase(),
    }
    return {
        form: [text and text.format(**fields) for text in texts] for form, texts in FORMS.items()
    }


def accepted(call, accepts):
    """Return whether Python and the SDK accept ``client.`` + call. All other names in the call are
    mock objects. As ``*name`` or ``**name``, a mock object adds no arguments.
    """
    client = type("Client", (), {"__getattr__": lambda _, name: partial(accepts, name)})()
    code = "client." + call.replace("client.", "inner.")
    try:
        eval(compile(code, "call", "eval"), defaultdict(MagicMock, client=client))
    except (TypeError, SyntaxError):
        return False
    return True


def aws(service, _):
    """Return two functions for a boto3 client. The first returns whether the client has a method.
    The second raises TypeError if botocore refuses the names of a call's arguments. It accepts
    wrong values, because the metric does not judge values.
    """
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = boto3.client(service, region_name="us-east-1", **keys)
    answer = MagicMock(status_code=200), {}
    client.meta.events.register("before-call", lambda **_: answer)

    def accepts(name, /, *args, **kwargs):
        method = getattr(client, name)
        if name not in client.meta.method_to_api_mapping:
            return inspect.signature(method).bind(*args, **kwargs)
        # All arguments get a harmless value: botocore's handlers read some values before botocore
        # checks the names.
        try:
            return method(*args, **dict.fromkeys(kwargs, "my-bucket"))
        except ParamValidationError as error:
            if re.search(r'(Missing required|Unknown) parameter in input: "', str(error)):
                raise TypeError(str(error)) from None

    return (lambda name: inspect.ismethod(getattr(client, name, None))), accepts


def azure(service, client):
    """Return two functions for an Azure client. The first returns whether the client has a method.
    The second raises TypeError if the method's signature does not accept a call's arguments.
    """
    described = next(iter(load_index().methods("azure", client, service).values()))
    cls = getattr(importlib.import_module(described.module), client)

    def accepts(name, /, *args, **kwargs):
        return inspect.signature(getattr(cls, name)).bind(None, *args, **kwargs)

    return (lambda name: hasattr(cls, name) and not name.startswith("_")), accepts


@pytest.mark.parametrize("api", [*AWS_APIS, *AZURE_APIS])
def test_every_form_is_judged_as_the_sdk_judges_it(api):
    provider, sdk = ("aws", aws) if api in AWS_APIS else ("azure", azure)
    *place, name = api.split(".")
    service = place[0]
    client = place[-1]
    exists, accepts = sdk(service, client)
    methods = load_index().methods(provider, client, service)
    other = next(o.name for o in methods.values() if o.name != name and o.operation)
    parameters = [p for p in methods[name].parameters if "VAR" not in p.kind and p.name != "from"]
    required = [p.name for p in parameters if p.required]
    optional = [p.name for p in parameters if not p.required]
    for form, (call, rest) in forms(name, required, optional, other).items():
        text = (call or "") + rest
        found = judge_call(text, [name], load_index(), provider, client, service)
        called = re.match(r"[\w.]+", call)[0] if call else "".join(re.findall(r"^\s*(\w+)", text))
        category = "incorrect_existing" if called != name else "invalid_usage"
        if not exists(called):
            category = "nonexistent"
        elif called == name and call and accepted(call, accepts):
            category = "valid"
        assert (found.category, found.call) == (category, call), (form, text, found)
        if form == "extra_arg":
            assert not found.valid_closed, (form, text, found)
