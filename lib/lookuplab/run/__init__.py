"""Executes notebooks. The modules of this package implement the command line, read notebooks and
profiles, fetch downloads, run notebooks, audit the record, and write the pages with the results.
"""
