"""Defines sizes, style and colours of all pictures. This module imports neither seaborn nor SciPy,
so that lessons, which do without these packages, can use it.
"""

from pathlib import Path

# in inches; a picture is as wide as the text of a page, so that it need not be scaled for print
WIDTH, HEIGHT = 6.5, 3.5
STYLE = Path(__file__).with_name("pictures.mplstyle")
DARK, GREY, PALE = "#222222", "#444444", "#e4e4e4"
