"""A program's supervisor: waits for its verdict, looks at its time, memory and processes, and ends it."""

import os
import select
import signal
import time

from lookuplab.execution import guard

TICK = 0.1  # seconds between two looks at a program's processes and memory
MESSAGE = 1 << 16  # bytes read at once: more than a verdict has


def watch(first: int, results: int, outputs: int, caller: int, task: dict, others: set) -> dict:
    """The program's verdict, or a failure when it has ended without one, or has taken too much.

    first: its process, or that of its namespaces. results, outputs: where its verdict and its words come from. caller:
    closed when nobody waits for the answer. others: processes that are not the program's.
    """
    limits, started = task["limits"], time.monotonic()
    poll = select.poll()
    for end, events in ((results, select.POLLIN), (outputs, select.POLLIN), (caller, 0)):
        poll.register(end, events)
    written, received, looked = 0, b"", started
    while True:
        ended, status = os.waitpid(first, os.WNOHANG)
        ready = dict(poll.poll(0 if ended else TICK * 1000))
        if caller in ready:
            return failure("nobody waits for the verdict")
        if results in ready:
            more = os.read(results, MESSAGE)
            received += more
            verdict = guard.verdict(received)
            if verdict is not None or not more:
                last = last_word(status if ended else end_of(first))  # its end in order: so its CPU time is counted
                return verdict or last
        elif ended:
            return last_word(status)
        if outputs in ready:
            more = len(os.read(outputs, MESSAGE))
            written += more
            if written > limits["output"]:
                return failure(f"wrote more than {limits['output']} bytes of output")
            if not more:
                poll.unregister(outputs)
        now = time.monotonic()
        if now - started > limits["seconds"]:
            return failure(f"ran for more than {limits['seconds']:g} s")
        if now - looked > TICK:
            looked = now
            if reason := excess(limits, others, task["private"]):
                return failure(reason)


def failure(reason: str, stopped: bool = True) -> dict:
    return {"passed": False, "error": reason, "stopped": stopped}


def end_of(first: int):
    """Its wait status, or None if it does not end soon."""
    for _ in range(250):
        number, status = os.waitpid(first, os.WNOHANG)
        if number:
            return status
        time.sleep(0.002)
    return None


def last_word(status) -> dict:
    """How a program without a verdict ended. The first process of its namespaces hands a signal on as 128 and more."""
    if status is None:
        return failure("closed the way of its verdict")
    code = os.waitstatus_to_exitcode(status)
    number = -code if code < 0 else code - 128
    name = signal.Signals(number).name if number in set(signal.Signals) else f"exit status {code}"
    # SIGKILL may be the kernel's, for want of memory on the machine
    return failure(f"ended before its test did ({name})", number == signal.SIGKILL)


def processes() -> set:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def descendants(others: set) -> set:
    """Processes below this one, of those that are not ``others``."""
    parents = {}
    for number in processes() - others:
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                parents[number] = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found, more = set(), {os.getpid()}
    while more:
        more = {number for number, parent in parents.items() if parent in more} - found
        found |= more
    return found


def excess(limits: dict, others: set, private: bool) -> str:
    """What the program has too much of, or ""."""
    alive = processes() - others if private else descendants(others)
    if len(alive) > limits["processes"] + 1:
        return f"started more than {limits['processes']} processes"
    memory = 0
    for number in alive:
        try:
            with open(f"/proc/{number}/status", "rb") as file:
                lines = [line.split() for line in file]
        except OSError:
            continue
        memory += sum(int(line[1]) for line in lines if line[0] in (b"RssAnon:", b"RssShmem:", b"VmSwap:")) << 10
    return f"took more than {limits['memory']} bytes of memory" if memory > limits["memory"] else ""


def end_all(first: int, others: set) -> None:
    """End the program's processes. With the first of its namespaces, the kernel ends all the others."""
    alive = {first}
    while alive:
        for number in alive:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.001)
        except ChildProcessError:
            pass
        alive = descendants(others)
