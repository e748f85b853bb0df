"""Running programs that a model wrote: namespaces, and a server that forks two processes for each of them.

``server`` is the user's side; ``inside`` and ``namespaces`` run in the program's Python: standard library alone, for any
Python >= 3.9.
"""
