from lookuplab.models.local import distributions  # noqa: F401
