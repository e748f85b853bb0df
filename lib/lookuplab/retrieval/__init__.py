"""Which documents belong to a query: a ranker, a ranker of chosen precision, and the measures of both."""

from lookuplab.errors import UserError


def check_k(k: int) -> None:
    """Raise UserError unless ``k``, a number of documents, is at least 1."""
    if k < 1:
        raise UserError(f"k is {k}; the number of retrieved documents must be 1 or more")
