"""The code that the notebooks of one folder share is installed as the package
``lookuplab_notebooks``: ``lookuplab_notebooks.toolgen.table_rows`` is
notebooks/toolgen/table_rows.py.
"""
