"""The code before an invocation, as in the paper's samples (Appendix A.4, Figures 12 and 13)."""

from lookuplab.cloudapi.specs import ApiSpec

# The paper's Listing 1 lives with the chat models; base models see only this text.


def imports(spec: ApiSpec) -> str:
    """What the snippet imports."""
    if spec.provider == "aws":
        return "import boto3\n"
    return f"from {spec.module} import {spec.client}\nfrom consts import client_args, client_kwargs\n"


def construction(spec: ApiSpec) -> str:
    """The line that makes the client."""
    if spec.provider == "aws":
        return f'client = boto3.client("{spec.client}")\n'
    return f"client = {spec.client}(*client_args, **client_kwargs)\n"


def task_prompt(spec: ApiSpec, comment: str) -> str:
    """Imports, declarations and a comment, ending just before the API's name (Section 2.2)."""
    return f"{imports(spec)}\n# initialize {spec.service} client\n{construction(spec)}\n# {comment}\nresponse = client."
