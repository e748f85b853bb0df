"""Comments that a model writes from an API's description: the paper's own step (A.2, step 7), with any model."""

from collections.abc import Iterable

from lookuplab.cloudapi.benchmark import PROMPTS_PER_API
from lookuplab.cloudapi.comments import leaks_name, normalised
from lookuplab.cloudapi.specs import ApiSpec
from lookuplab.models import Decoding, Prompt, complete
from lookuplab.models.types import Model

# The paper's few-shot prompt is not published; the answers here are comments of its Figures 12 and 13 and their like.
FEW_SHOT = '''Translate each API description into 3 concise developer style comments. Never use the API's name.

Description: Adds the specified user to the specified group.
# Add a user to an IAM group
# Put this user into the group
# Make the user a member of the given group

Description: Retrieves the network resources for the specified global network.
# Get details of network resources for a global network
# Look up what belongs to the global network
# Fetch the resources of our network

Description: The Delete Blobs operation marks the specified blobs or snapshots for deletion.
# Mark blobs or snapshots for deletion
# Schedule some blobs to be deleted
# Flag the given snapshots as deleted

Description: {description}
#'''


def parse_comments(answer: str, name: str) -> list[str]:
    """The distinct comments in a model's answer, at most three, none of which gives the API's name away."""
    found: dict[str, str] = {}
    for line in ("#" + answer).split("\n\n")[0].splitlines():
        comment = line.strip().lstrip("#-*0123456789. ").strip()
        if len(comment.split()) >= 2 and not leaks_name(comment, name):
            found.setdefault(normalised(comment), comment)
    return list(found.values())[:PROMPTS_PER_API]


def model_comments(model: Model, specs: Iterable[ApiSpec], store=None) -> dict[str, list[str]]:
    """API id -> the model's comments, greedy, kept in the completion store."""
    by_id = {spec.id: spec for spec in specs}
    prompts = [Prompt(api, FEW_SHOT.format(description=spec.description)) for api, spec in by_id.items()]
    answers = complete(model, prompts, Decoding(max_new_tokens=120, stop=("\nDescription:",)), store=store)
    return {answer.id: parse_comments(answer.text, by_id[answer.id].name) for answer in answers}
