"""Makes sliders for live sessions: a page changes with the numbers you choose.

A page is a function from numbers to HTML. A notebook that runs unattended calls the function once,
without sliders, and shows the same content. (``ipywidgets.interact`` is not used here: it shows
pages in an Output widget, with which an unattended run never ends.)
"""

from collections.abc import Callable, Iterable, Sequence

import pandas as pd

from lookuplab.errors import needs

with needs("widgets"):
    import ipywidgets


def slide(page: Callable[..., str], **ranges: tuple[float, float, float, float]) -> ipywidgets.VBox:
    """Return a widget with one slider for each keyword. Below the sliders is the page that ``page``
    makes for the chosen numbers. A keyword's value has four numbers: the slider's lowest and
    highest value, its step, and its first value.

    The page is redrawn at every move, so it must be cheap: it may select among stored answers, but
    not generate any.
    """
    sliders = {
        name: ipywidgets.FloatSlider(
            first, min=low, max=high, step=step, description=name, layout={"width": "90%"}
        )
        for name, (low, high, step, first) in ranges.items()
    }
    shown = ipywidgets.HTML()

    def draw(_: object = None) -> None:
        # avoids settings such as 0.30000000000000004
        shown.value = page(**{name: round(slider.value, 10) for name, slider in sliders.items()})

    for slider in sliders.values():
        slider.observe(draw, "value")
    draw()
    return ipywidgets.VBox([*sliders.values(), shown])


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table with the column headings ``heads``. Cells are converted to text."""
    frame = pd.DataFrame(rows, columns=heads)
    return str(frame.to_html(index=False, border=0, justify="left"))
