"""Configures Sphinx for the report. `lookuplab report` collects the report's sources and builds it.
No setting may need a network.
"""

import functools

from sphinx.search.en import SearchEnglish

import lookuplab

# without the cache, stemming takes a tenth of the build
SearchEnglish.stem = functools.cache(SearchEnglish.stem)

project = "lookuplab"
release = lookuplab.__version__
root_doc = "index"
extensions = ["myst_nb"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # the default loads scripts from a network
nb_merge_streams = True
nb_render_image_options = {"alt": "Picture that the cell draws"}
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]

html_theme = "furo"
html_title = "lookuplab"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["report.css"]
html_copy_source = False
html_show_sourcelink = False
html_domain_indices = False  # an index is not needed, because the search finds every name
html_use_index = False
html_show_copyright = False
html_show_search_summary = False  # it would fetch pages, which browsers forbid for local files
smartquotes = False
