"""Messages for users."""

import pytest

from lookuplab.errors import UserError, check_choice


def test_a_misspelt_name_of_few_gets_all_choices_the_nearest_first():
    with pytest.raises(UserError, match=r"^trim is 'lift'; it must be left, right$"):
        check_choice("trim", "lift", ["right", "left"])


def test_a_misspelt_name_of_many_gets_the_three_nearest():
    names = ["table1", "table2", "table3", *(f"fig{n}" for n in range(20))]
    with pytest.raises(UserError, match=r"it must be table., table., table. or another of 23$"):
        check_choice("notebook", "tablee", names)
