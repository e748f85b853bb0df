from lookuplab.models.store import AnswerStore  # noqa: F401
