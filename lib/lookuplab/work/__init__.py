"""Does work of any kind: ``spread`` gives it to threads, to a cluster or to a launch's processes,
``progress`` shows how far it has come, ``resources`` says what of the machine this job may use.
"""
