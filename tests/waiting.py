"""Waits for what other processes do."""

import time

import psutil


def until(condition, seconds=300):
    """Wait until ``condition()`` is true, and return its value. The default is long, because a
    notebook takes a minute on a busy machine.
    """
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return found


def is_at_work(process):
    """Return whether a process has not ended."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
