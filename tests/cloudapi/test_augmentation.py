"""The five augmentation designs, after the paper's Figure 15."""

import ast

import pytest

from lookuplab.cloudapi.augmentation import DESIGNS, RULE, augment, docstring
from lookuplab.cloudapi.specs import ApiSpec, Parameter
from lookuplab.errors import UserError

SPEC = ApiSpec("aws", "cognito-sync", "cognito-sync", "list_identity_pool_usage",
               (Parameter("NextToken"), Parameter("MaxResults"), Parameter("Pool", required=True)), description="Gets a list.")


def test_name_only_shows_name_and_client():
    assert docstring([SPEC], "name") == (
        f'"""\nUse the following API information as reference:\n{RULE}\n'
        f"API name: list_identity_pool_usage\nService/Client name: cognito-sync\n{RULE}\n\"\"\"\n")


def test_specification_lists_required_and_optional_arguments():
    text = docstring([SPEC], "specification")
    assert "Required arguments: Pool\nOptional arguments: NextToken MaxResults\n" in text
    assert "Gets a list" not in text


def test_description_and_specification_shows_both():
    text = docstring([SPEC], "description_specification")
    assert "Description: Gets a list." in text
    assert "Required arguments: Pool" in text


def test_full_documentation_is_cut_after_5000_characters():
    text = docstring([SPEC], "full", {SPEC.id: "x" * 6000})
    assert text.count("x") == 5000


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_is_a_docstring_that_parses(design):
    module = ast.parse(augment("x = 1\n", [SPEC, SPEC], design, {SPEC.id: 'says """hello""" \n'}))
    assert "list_identity_pool_usage" in ast.get_docstring(module)


def test_no_document_leaves_the_prompt_alone():
    assert augment("prompt", [], "full") == "prompt"


def test_an_unknown_design_is_refused():
    with pytest.raises(UserError, match="unknown augmentation design 'nam'"):
        docstring([SPEC], "nam")
