"""Runs programs that a model wrote. A server forks two processes for each program. Linux namespaces
isolate these processes from the rest of the machine.

The module ``server`` starts the server and sends programs to it. The server's own code is in
``inside`` and ``namespaces``. Both modules run under the Python that the programs need, so they use
only the standard library of Python >= 3.9.
"""
