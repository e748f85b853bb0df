"""Retrieves the documents for a query, with rankers, and measures the quality of rankings."""
