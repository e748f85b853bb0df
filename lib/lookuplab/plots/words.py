"""Words as large as their counts."""

from collections.abc import Mapping

import matplotlib as mpl
from matplotlib.figure import Figure

from lookuplab.plots.look import COLOURS, SIZE_COLOURS, canvas


def word_cloud(counts: Mapping[str, float], *, title: str = "", seed: int = 0) -> Figure:
    """Words as large as their counts, e.g. the services of Figure 2b; placed by a seeded generator."""
    from wordcloud import WordCloud

    if not counts:
        raise ValueError("no words to draw")
    palette = [COLOURS["high"], COLOURS["aws"], SIZE_COLOURS["large"], "#1b7837", "#b2182b"]
    cloud = WordCloud(
        font_path=mpl.font_manager.findfont("DejaVu Sans"),
        width=1500,
        height=700,
        max_font_size=150,
        background_color="white",
        prefer_horizontal=0.95,
        random_state=seed,
        color_func=lambda *_, random_state, **__: palette[random_state.randrange(len(palette))],
    )
    # sorted, so that the picture depends on the counts and not on the order in which they were met
    image = cloud.generate_from_frequencies(dict(sorted(counts.items()))).to_array()
    figure, axes = canvas(title, "")
    axes.imshow(image, interpolation="bilinear")
    axes.set_axis_off()
    return figure
