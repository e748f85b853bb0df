"""Retrieval-augmented data-science code (Vinayakumar, Ashwani and Vo-Thanh, Stanford CS224N),
judged by execution.
"""
