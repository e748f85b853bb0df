"""Tests messages for users."""

import pytest
from doors import refused

from lookuplab.errors import check_choice, explain


def test_a_misspelt_name_of_many_gets_the_three_nearest():
    names = ["table1", "table2", "table3", *(f"fig{n}" for n in range(20))]
    with refused(r"table., table., table. or another of 23 choices, see a$"):
        check_choice("notebook", "tablee", names, ", see a")


def test_where_nothing_can_be_chosen_the_message_says_so():
    with refused(r"the parameter is 'x'; there is none to choose from$"):
        check_choice("the parameter", "x", [])


NO_MEMORY = [
    MemoryError(),
    ImportError("libscipy.so: failed to map segment from shared object"),
    RuntimeError("can't start new thread"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    OSError(12, "Cannot allocate memory"),
]


@pytest.mark.parametrize("error", NO_MEMORY)
def test_a_lack_of_memory_is_one_line(error):
    assert explain(error).startswith("not enough memory; raise the limit")


def test_a_process_that_ran_out_of_memory_stores_and_shows_nothing(run_python):
    """This also holds if a parser reported the failed allocation as a syntax error."""
    code = """
import resource
from lookuplab.work import check_memory
from lookuplab.models.store import AnswerStore
store = AnswerStore(False)
store.add({"a": 1})
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), -1))
store.add({"b": 1})
found = []
try:
    while True: found.append(bytearray(1 << 20))
except MemoryError: found.clear()
for ask in check_memory, lambda: store.add({"c": 1}):
    try: ask()
    except MemoryError as error: print(error)
print(*store.get(store.present()))"""
    *said, kept = run_python(code).splitlines()
    assert len(said) == 2 and "this process may use" in said[0] and kept == "a b"


@pytest.mark.parametrize("number", [5, 27, 28, 116, 122])
def test_an_error_of_the_disk_is_one_line(number):
    assert explain(OSError(number, "why")).startswith("cannot use the disk: why; free some")


def test_a_path_that_cannot_be_read_as_a_folder_is_one_line():
    """For example, a user names the root of the disk, and some paths in /proc cannot be read."""
    assert "cannot use x: Invalid argument" in explain(OSError(22, "Invalid argument", "x"))
