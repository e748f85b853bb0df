"""Runs programs that a model wrote. A server forks two processes for each program, and Linux
namespaces contain them.

``server`` starts the server and sends programs to it. ``inside`` and ``namespaces`` are the code of
the server. They run under the Python that the programs need, so they use only the standard library
of Python >= 3.9.
"""
