"""Runs programs that a model wrote, contained by Linux namespaces, on a server that forks two
processes for each program.

``server`` starts the server and sends programs to it. ``inside`` and ``namespaces`` run in the
server, under the Python that the programs need, and use only the standard
library of Python >= 3.9.
"""
