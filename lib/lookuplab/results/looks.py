"""What all pictures share. Imports neither seaborn nor scipy, which a lesson does without."""

from pathlib import Path

# inches; the text width of a page, so that letters keep their size in print
WIDTH, HEIGHT = 6.5, 3.5
STYLE = Path(__file__).with_name("pictures.mplstyle")
DARK, GREY, PALE = "#222222", "#444444", "#e4e4e4"
