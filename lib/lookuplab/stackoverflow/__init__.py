"""Measures retrieval-augmented generation of data-science code (Vinayakumar, Ashwani and Vo-Thanh,
Stanford CS224N) by executing the code.
"""
