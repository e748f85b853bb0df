"""Defines the sizes, style and colours of all pictures. This module imports neither seaborn nor
SciPy, so that lessons can use it without these packages.
"""

from pathlib import Path

# in inches; a picture is as wide as a page's text, so it is printed without scaling
WIDTH, HEIGHT = 6.5, 3.5
STYLE = Path(__file__).with_name("pictures.mplstyle")
DARK, GREY, PALE = "#222222", "#444444", "#e4e4e4"
