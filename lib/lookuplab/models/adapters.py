from lookuplab.models.load import ADAPTER as CONFIG, is_model  # noqa: F401
