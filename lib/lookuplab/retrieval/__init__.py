"""Retrieval of the documents for a query: rankers, and measures of ranking quality."""
