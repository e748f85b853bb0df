from lookuplab.models.complete import SHARE  # noqa: F401
