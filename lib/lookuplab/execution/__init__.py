"""Running programs that a model wrote: a sandbox, and a server that forks a process for each of them.

Inside the sandbox stand enter, inside, watching, guard and kernel: standard library alone, for any Python >= 3.9.
"""
