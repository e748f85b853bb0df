"""Configures the JupyterLab that `make lab` starts: opening and saving a notebook does not change
the file.
"""


def as_committed(model, **_):
    """Leave out what JupyterLab notes about the Python that it found, such as its version."""
    if model["type"] == "notebook":
        model["content"]["metadata"]["language_info"] = {"name": "python"}


# Jupyter gives a configuration file its `c`.
c.ContentsManager.pre_save_hook = as_committed  # noqa: F821
