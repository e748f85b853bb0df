"""Helpers for long work: ``spread`` runs tasks in threads, on a cluster or in the processes of a
launch; ``progress`` reports how far they are; ``resources`` says how much of the machine this job
may use.
"""
