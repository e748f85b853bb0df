"""Ranks documents for a query, and measures the quality of rankings."""
