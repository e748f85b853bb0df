"""Code shared by the notebooks of one folder, installed as the package ``lookuplab_notebooks``:
``lookuplab_notebooks.toolgen.table_rows`` is notebooks/toolgen/table_rows.py.
"""
