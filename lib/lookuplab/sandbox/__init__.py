"""Runs programs that a model wrote, contained by namespaces, on a server that forks two processes
for each program.

``server`` is the user's side; ``inside`` and ``namespaces`` run in the program's Python
(``environments``) and use only the standard library of Python >= 3.9.
"""
