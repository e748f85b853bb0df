"""Sixty surface forms of a completion, over real APIs: our judgement equals what the real SDK does
with the call.

The SDK is asked without a network: botocore's request is answered by an event handler before it is
sent, an Azure method's own signature binds what the call passes. A form says only where its first
call ends; everything else follows.
"""

import inspect
import re
from unittest.mock import MagicMock

import boto3
import pytest
from botocore.exceptions import ParamValidationError

from lookuplab.cloudapi.specs import load_index
from lookuplab.cloudapi.validity import judge_call
from recipes.cloudapi.sdks import azure_clients

AWS_APIS = """
    kms.encrypt s3.put_object s3.list_objects_v2 s3.upload_file ec2.describe_instances
    kms.list_keys ec2.describe_hosts athena.stop_query_execution glacier.create_vault
    rds.generate_db_auth_token logs.create_export_task
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
CODE_BEHIND = """
print(response)

response = client.delete_everything(Bogus=1)
for x in response:
    print(x("""
PROSE_BEHIND = "\n```\n\nThis calls the API (it's the right one). Don't use client.foo()."
HARD_VALUES = {
    "str_parens": '''"a) # (not a comment), b='c' )("''',
    "fstring": '''f"{prefix}-{fmt('x', n=(1))}-{{lit)}}"''',
    "triple_quoted": '''"""line 1)\nline (2\n'"quoted"' , z=1"""''',
    "raw_bytes_concat": r"""r'a\(b' "c)" 'd\'(e' """,
    "nested_call_arg": 'os.path.join(get_root(1, (2)), "x", *parts, sep=")")',
    "nested_client_call": 'client.update_field(Q=1)["Id"]',
    "lambda_ternary_compr": (
        "[f(x) for x in (1, 2)] if flag else (lambda *a, **k: {'k': (a, k)})(1, z=2)"
    ),
    "nested_dict_list": '{"a": [{"b": ("c)", ["d", {"e": 1}])}], "name": "x=1, y=2"}',
    "unicode_arg": '"名前（仮）— “q”"',  # noqa: RUF001
}


def camel(name, first=str.lower):
    words = "".join(word.title() for word in name.split("_"))
    return first(words[0]) + words[1:]


def forms(name, required, optional, other):
    """form -> (first call or None, the rest of the completion). ``required`` and ``optional`` are
    argument names.
    """
    arguments = [f'{argument}="my-value"' for argument in required]
    call = f"{name}({', '.join(arguments)})"
    more = f'{optional[0]}="x"' if optional else ""
    lines = "".join(f"    {argument},\n" for argument in arguments)
    plain = {
        "oneline": call,
        "oneline_opt": f"{name}({', '.join(filter(None, [*arguments, more]))})",
        "multiline": f"{name}(\n{lines})",
        "multiline_comments": f'{name}(  # see (docs :)\n    # don\'t forget, e.g. "x(" \n{lines})',
        "weird_layout": f"{name}(\r\n\t"
        + ",\r\n\t".join(a.replace("=", " = ") for a in arguments)
        + "\r\n)",
        "backslash_cont": f"{name} \\\n    ({', '.join(arguments)})",
        "splat_literal": f"{name}(**{{{', '.join(f'{a!r}: 1' for a in required)}}})",
        "star_literal": f"{name}(*[{', '.join('1' for _ in required)}])",
        "splat_var_only": f"{name}(**params)",
        "splat_plus_explicit": f"{name}({', '.join([*arguments, '**params'])})",
        "star_var": f"{name}(*args)",
        "positional_all": f"{name}({', '.join('1' for _ in required)})",
        "positional_first": f"{name}({', '.join(['1', *arguments[1:]])})",
        "too_many_positional": f"{name}({', '.join(map(str, range(40)))})",
        "kw_duplicate": f"{name}({', '.join([*arguments, 'b=1', 'b=2'])})",
        "pos_kw_duplicate": f"{name}({', '.join(['1', *arguments])})",
        "splat_duplicate": f"{name}({', '.join([*arguments, 'b=1', '**dict_b'])})".replace(
            "dict_b", '{"b": 1}'
        ),
        "wrong_arg_name": f"{name}({', '.join(camel(a) for a in arguments)})",
        "typo_arg_name": f"{name}({', '.join(a.replace('=', 's=') for a in arguments)})",
        "missing_required": f"{name}({', '.join(arguments[:-1])})",
        "no_args": f"{name}()",
        "space_before_paren": f"{name} ({', '.join(arguments)})",
        "extra_arg": f"{name}({', '.join([*arguments, 'BogusToken=1'])})",
        "opt_only": f"{name}({more})",
        "alias": f"{name}({', '.join([*arguments, 'Filters=[]'])})",
        "name_pascal": camel(call, str.upper),
        "name_camel": camel(call),
        "name_upper": call.replace(name, name.upper()),
        "other_existing": call.replace(name, other),
        "near_existing": f"{other}(\n{lines})",
        "foreign_method": call.replace(name, "create_load_balancer_listeners"),
        "nonexist_synonym": f"do_{call}",
        "nonexist_async": call.replace(name, f"{name}_async"),
        "presigned": f'generate_presigned_url("{name}", Params={{}})',
        "sub_attr_method": f"operations.{call}",
        "target_attr": f"{name}.retry({', '.join(arguments)})",
        "bad_syntax": f"{name}(a b)",
        "empty_argument": f"{name}(,)",
    }
    first = [*required, *optional, "data"][0]
    for form, value in HARD_VALUES.items():
        plain[form] = f"{name}({', '.join([f'{first}={value}', *arguments[1:]])})"
    behind = {
        "trailing_code": (call, CODE_BEHIND),
        "trailing_prose": (call, PROSE_BEHIND),
        "trailing_same_line": (call, '; print("done (ok)")  # trailing )'),
        "trailing_second_wrong": (f"{name}()", f"\nresponse = client.{call}"),
        "chained_get": (call, '.get("Items", [])[0]["Name"]'),
        "chained_result": (call, ".result(timeout=30)\n"),
        "paginator": (f'get_paginator("{name}")', ".paginate(X=1)"),
        "waiter": (f'get_waiter("{name}")', ".wait(X=1)"),
        "end_of_text": (call, "<|endoftext|>"),
    }
    unfinished = {
        "truncated_mid_args": f'{call[:-1]}, other="m',
        "truncated_open": f"{name}(",
        "truncated_in_string": f'{name}(x="abc(def)',
        "truncated_repeat": f"{call[:-1]}, Tags=" + '[{"Key": "k"}, ' * 20,
        "attr_no_call": f"{name}\n",
        "attr_other": "__class__.__name__\n",
        "newline_before_paren": f"{name}\n()",
        "empty": "\n\n",
        "leading_newline": f"\n    {call}",
        "generic_subscript": f'{name}["x"]({", ".join(arguments)})',
        "comment_first": f"# call it\n{call}",
        "fence_first": f"```python\nclient.{call}\n```",
        "nothing": "",
        "wrong_bracket": f"{name}(]{call}",
    }
    rows = {form: (text, "") for form, text in plain.items()} | behind
    return rows | {form: (None, text) for form, text in unfinished.items()}


class Names(dict):
    """Whatever a completion names: empty behind ``*`` and ``**``."""

    def __missing__(self, name):
        return MagicMock()


class Client:
    """Stands for ``client`` in the evaluated call; ``accepts`` binds the arguments."""

    def __init__(self, accepts):
        self._accepts = accepts

    def __getattr__(self, name):
        return lambda *args, **kwargs: self._accepts(name, args, kwargs)


def accepted(call, accepts):
    """What Python and the SDK say to ``client.`` + call."""
    code = "client." + call.replace("client.", "inner.")
    try:
        eval(compile(code, "call", "eval"), Names(client=Client(accepts)))
    except (TypeError, SyntaxError):
        return False
    return True


def aws(service, _):
    """(whether boto3's client has a method; raises TypeError where botocore would refuse the names
    of a call). Wrong values, which are not what the metric is about, pass.
    """
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = boto3.client(service, region_name="us-east-1", **keys)
    answer = MagicMock(status_code=200), {}
    client.meta.events.register("before-call", lambda **_: answer)

    def exists(name):
        return inspect.ismethod(getattr(client, name, None))

    def accepts(name, args, kwargs):
        method = getattr(client, name)
        if name not in client.meta.method_to_api_mapping:
            return inspect.signature(method).bind(*args, **kwargs)
        try:  # one harmless value: botocore's handlers look at some before it validates names
            return method(*args, **dict.fromkeys(kwargs, "my-bucket"))
        except ParamValidationError as error:
            if re.search(r'(Missing required|Unknown) parameter in input: "', str(error)):
                raise TypeError(str(error)) from None

    return exists, accepts


def azure(service, client):
    """The same of an Azure client, whose methods say themselves what they take."""
    cls = next(one for one in azure_clients(service) if one.__name__ == client)

    def accepts(name, args, kwargs):
        return inspect.signature(getattr(cls, name)).bind(None, *args, **kwargs)

    return (lambda name: hasattr(cls, name) and not name.startswith("_")), accepts


@pytest.mark.parametrize("api", [*AWS_APIS, *AZURE_APIS])
def test_every_form_is_judged_as_the_sdk_judges_it(api):
    provider, sdk = ("aws", aws) if api in AWS_APIS else ("azure", azure)
    *place, name = api.split(".")
    service, client = place[0], place[-1]
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
        assert found.valid or not found.valid_closed
        if provider == "aws" or form in ("oneline", "multiline", "trailing_code"):
            assert found.valid == found.valid_closed, (form, text, found)
        if form == "extra_arg":
            assert not found.valid_closed, (form, text, found)
