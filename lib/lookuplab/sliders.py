"""Numbers to move under a page that depends on them, for live sessions.

A page is a function from numbers to HTML. Called once, without sliders, it shows the same in a notebook that was run
without a reader.
"""

import html
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ipywidgets


def slide(
    page: Callable[..., str], **ranges: tuple[float, float, float, float]
) -> "ipywidgets.VBox":
    """``page`` under a slider for each keyword: its (lowest, highest, step, first) value.

    The page is drawn anew at every move, so it must be cheap: a selection among answers that exist, no generation.
    """
    import ipywidgets

<<<<<<< HEAD
    sliders = {
        name: ipywidgets.FloatSlider(
            min=low, max=high, step=step, value=first, description=name, layout={"width": "90%"}
        )
        for name, (low, high, step, first) in ranges.items()
    }

    def drawn() -> str:
        return page(
            **{name: round(slider.value, 10) for name, slider in sliders.items()}
        )  # 0.1 + 0.2 is no setting

    shown = ipywidgets.HTML(drawn())

    def draw(_: object) -> None:
        shown.value = drawn()
=======
    sliders = {}
    for name, (low, high, step, first) in ranges.items():
        options = {"description": name, "layout": {"width": "90%"}}
        sliders[name] = ipywidgets.FloatSlider(min=low, max=high, step=step, value=first, **options)
    shown = ipywidgets.HTML()

    def draw(_: object = None) -> None:
        shown.value = page(
            **{name: round(one.value, 10) for name, one in sliders.items()}
        )  # 0.1 + 0.2 is no setting
>>>>>>> main

    for slider in sliders.values():
        slider.observe(draw, "value")
    draw()
    return ipywidgets.VBox([*sliders.values(), shown])


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table with ``heads``; cells are shown as their texts."""
<<<<<<< HEAD

    def line(tag: str, cells: Iterable[object]) -> str:
        texts = (
            f"<{tag} style='text-align:left'>{html.escape(str(cell))}</{tag}>" for cell in cells
        )
        return f"<tr>{''.join(texts)}</tr>"

    return f"<table>{line('th', heads)}{''.join(line('td', row) for row in rows)}</table>"
=======
    import pandas as pd

    return pd.DataFrame(list(rows), columns=heads).to_html(index=False, border=0, justify="left")


def image(figure: "Figure", text: str) -> str:
    """A figure inside of the page, with ``text`` for those who do not see it."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=90, bbox_inches="tight", metadata={"Software": None})
    content = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{html.escape(text)}" src="data:image/png;base64,{content}">'
>>>>>>> main
