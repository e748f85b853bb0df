"""Helpers for long work. ``spread`` runs tasks in threads or on a cluster. ``progress`` reports how
much is done. ``resources`` says how much of the machine this job may use. ``lock`` keeps two
commands from writing to the same place. ``stopping`` ends an interrupted command cleanly.
"""
