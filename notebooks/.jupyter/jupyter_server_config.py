"""Configures the JupyterLab that `make lab` starts: opening and saving a notebook does not change
the file.
"""


def as_committed(model, **_):
    """Remove from a notebook what JupyterLab writes about its Python, such as the version."""
    if model["type"] == "notebook":
        model["content"]["metadata"]["language_info"] = {"name": "python"}


# Jupyter defines `c` when it runs a configuration file.
c.ContentsManager.pre_save_hook = as_committed  # noqa: F821
