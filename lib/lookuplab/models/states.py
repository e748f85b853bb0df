from lookuplab.models.local import decoder_start  # noqa: F401
