"""Waits for what other processes do."""

import time

import psutil


def until(condition, seconds=300):
    """Return what ``condition`` returns, as soon as that is true. On a busy machine, a notebook
    takes a minute.
    """
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return found


def is_at_work(process):
    """Return whether a process has not ended."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
