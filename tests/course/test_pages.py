"""Tests that a page under sliders shows the numbers to which the sliders are set."""

from lookuplab_notebooks.sliders import slide


def test_a_slider_redraws_the_page_with_its_number():
    box = slide(lambda a, b: f"{a} and {b}", a=(0, 1, 0.1, 0.2), b=(0, 100, 5, 50))
    first, second, shown = box.children
    assert shown.value == "0.2 and 50.0"
    first.value = 0.1 + 0.2
    second.value = 75
    assert shown.value == "0.3 and 75.0"
