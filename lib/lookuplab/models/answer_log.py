from lookuplab.models.complete import COLUMNS, LOG  # noqa: F401
