"""The code before an invocation, as in the paper's samples (Appendix A.4, Figures 12 and 13)."""

from lookuplab.cloudapi.specs import ApiSpec

# The paper's Listing 1 lives with the chat models; base models see only this text.


def imports(spec: ApiSpec) -> str:
    """What the snippet imports."""
    if spec.provider == "aws":
        return "import boto3\n"
    if spec.provider == "python" and not spec.module:  # called on a module
        package, dot, name = spec.client.rpartition(".")
        return f"from {package} import {name}\n" if dot else f"import {name}\n"
    return f"from {spec.module} import {_own_name(spec)}\nfrom consts import client_args, client_kwargs\n"


def construction(spec: ApiSpec) -> str:
    """The line that makes the client; none for a module."""
    if spec.provider == "aws":
        return f'client = boto3.client("{spec.client}")\n'
    if spec.provider == "python" and not spec.module:
        return ""
    return f"client = {_own_name(spec)}(*client_args, **client_kwargs)\n"


def task_prompt(spec: ApiSpec, comment: str) -> str:
    """Imports, declarations and a comment, ending just before the API's name (Section 2.2)."""
    if spec.provider != "python":
        made = f"# initialize {spec.service} client\n{construction(spec)}"
        return f"{imports(spec)}\n{made}\n# {comment}\nresponse = client."
    made = f"\n# initialize {_own_name(spec)}\n{construction(spec)}" if spec.module else ""
    return f"{imports(spec)}{made}\n# {comment}\nresult = {'client' if spec.module else _own_name(spec)}."


def _own_name(spec: ApiSpec) -> str:
    """Without its path, which clients of Python packages carry."""
    return spec.client.rpartition(".")[2]
