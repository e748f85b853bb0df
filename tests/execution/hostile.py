"""Solutions that attack the machine, the grader or the test. Name -> text; braces stand for things
of the real machine.

Each is right only if its attack succeeds: where it is contained, an exception or a wrong result is
left.
"""

RIGHT = "\nresult = [2 * x for x in test_input]\n"
WRONG = "\nresult = None\n"

# What raises inside the sandbox, and would else go on to the right result
CONTAINED = {
    "write in the home": "open({home!r} + '/written by a hostile program', 'w').close()",
    "read the home": "import os\nassert any(map(os.path.exists, {hidden!r}))",
    "read a file of the user": "open({file!r}).close()",
    "write over a file of the user": "open({file!r}, 'w').close()",
    "write in the system": "open('/usr/written', 'w').close()",
    "delete in the library": "import os\nos.unlink(os.__file__)",
    "read the home through a link": """
import os
os.symlink({home!r}, 'link')
assert any(os.path.exists('link/' + os.path.basename(name)) for name in {hidden!r})""",
    "connect to a local port": "import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)",
    "connect to the network": "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)",
    "send a datagram": "import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    "look up a name": "import socket\nsocket.getaddrinfo('example.org', 80)",
    "kill the parent": """
import os, time
os.kill(os.getppid(), 9)
time.sleep(.2)
os.kill(os.getppid(), 0)
assert os.getppid() != 1""",
    "stop all processes": "import os, signal\nos.kill(-1, signal.SIGSTOP)",
    "signal the caller": "import os\nos.kill({pid}, 0)",
    "trace the parent": """
import os, subprocess, sys
attach = "import ctypes; assert ctypes.CDLL(None).ptrace(16, {{}}, 0, 0) == 0".format(os.getppid())
subprocess.run([sys.executable, "-c", attach], check=True)""",
    "read the parent's environment": "import os\nopen(f'/proc/{{os.getppid()}}/environ').close()",
    "limit the parent": """
import os, resource
assert os.getppid() != 1
resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))""",
    "raise its limits": "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))",
    "make namespaces of its own": """
import subprocess
subprocess.run(['unshare', '-U', 'true'], check=True)""",
    "mount the system for writing": """
import subprocess
subprocess.run(['unshare', '-Urm', 'mount', '-o', 'remount,rw,bind', '/usr'], check=True)""",
    "fork without end": "import os\nwhile True:\n    os.fork()",
    "start threads without end": """
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(60,)).start()""",
    "take memory without end": "blocks = []\nwhile True:\n    blocks.append(bytearray(1 << 26))",
    "take memory in children": """
import os, time
for _ in range(8):
    if os.fork() == 0:
        block = b'x' * (1 << 28)
        time.sleep(60)
time.sleep(60)""",
    "fill the shared memory": """
for i in range(100):
    with open(f'/dev/shm/{{i}}', 'wb') as file:
        file.write(bytes(1 << 23))""",
    "write a huge file": "with open('huge', 'wb') as file:\n    file.write(bytes(1 << 27))\n    file.flush()",
    "run without end": "while True:\n    pass",
    "sleep without end": "import time\ntime.sleep(1000)",
    "print without end": "while True:\n    print('x' * 1000)",
    "hide memory in files that have no name": """
import os
kept = [os.memfd_create('hidden') for _ in range(20)]
for one in kept:
    os.write(one, bytes(15 << 20))""",
    "make files without end": "for i in range(100_000):\n    open(str(i), 'w').close()",
    "open files without end": "import os\nkept = [open(os.devnull) for _ in range(1000)]",
}

# What would end the test early, find it, change how it compares, or write its verdict
ALL_EQUAL = """
class E:
    __eq__ = __array_equal__ = lambda *_: True
    __ne__ = lambda *_: False
result = E()
"""
FORGED = {
    "leave before the test": "import os\nos._exit(0)",
    "exit before the test": "import sys\nsys.exit(0)",
    "kill itself": "import os\nos.kill(os.getpid(), 9)",
    "crash the interpreter": "import faulthandler\nfaulthandler._sigsegv()",
    "become another program": "import os\nos.execv('/bin/true', ['true'])",
    "leave at the end": "import atexit, os\natexit.register(os._exit, 0)" + WRONG,
    "replace the test": "import __main__\n__main__.exec_test = lambda result, answer: 1" + WRONG,
    "call the test's own answer": "import __main__\nresult = __main__.generate_test_case(1)[1]",
    "look for the test in memory": """
import gc
found = [one for one in gc.get_objects() if isinstance(one, dict) and 'expected_result' in one]
result = found[0]['expected_result']""",
    "look for the test in its memory map": """
import re
result = None
with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb') as memory:
    for line in maps:
        first, last = (int(one, 16) for one in line.split()[0].split('-'))
        if 'rw' in line:
            memory.seek(first)
            if re.search(b'def generate_test_[c]ase', memory.read(last - first)):
                result = [0, 2, 4]""",
    "close all files": "import os\nos.closerange(0, 1000)" + WRONG,
    "write a verdict wherever it can": """
import os
for number in range(3, 100):
    for word in (b'\\x00\\x00\\x00\\x0c["passed", ""]', b'\\1'):
        try:
            os.write(number, word)
        except OSError:
            pass
result = None""",
    "encode every verdict as passed": """
import json
json.JSONEncoder = type('E', (), {'__init__': lambda *_, **__: None, 'encode': lambda *_: '{"passed": true, "error": ""}'})
result = None""",
    "give what equals everything": "from unittest.mock import ANY as result",
    "give an object that equals everything": ALL_EQUAL,
    "freeze what equals everything": ALL_EQUAL + "import gc\ngc.freeze()",
    "give a text that equals everything": "class E(str):\n    __eq__ = __ne__ = lambda *_: True\nresult = E('x')",
    "patch a builtin": "import builtins\nbuiltins.all = builtins.isinstance = lambda *_: True\nresult = None",
    "listen to the interpreter": """
import sys
class Walk:
    def __str__(self):
        frame = sys._getframe()
        while frame:
            for name in ('answer', 'conclude', 'verdict'):
                if callable(found := frame.f_locals.get(name) or frame.f_globals.get(name)):
                    found('passed')
            frame = frame.f_back
        return ''
sys.addaudithook(lambda event, arguments: str(Walk()))
result = None""",
    "bring a module under the library's name": """
import os, sys
path = os.path.dirname(os.__file__) + '/../../..' + os.getcwd()
sys.path.insert(0, path)
for name in ('copy', 'pickle', 'json'):
    with open(name + '.py', 'w') as file:
        file.write('deepcopy = loads = dumps = lambda *_: True')
result = None""",
    "give an array that is always right": """
import numpy as np
class A(np.ndarray):
    all = any = lambda *_, **__: True
    __eq__ = lambda *_: True
result = np.zeros(3).view(A)""",
    "give a view of another's memory": """
import numpy as np
class V:
    __array_interface__ = {'shape': (3,), 'typestr': '<f8', 'data': (id(0.0) + 16, False), 'version': 3}
result = V()""",
}
# Replies written by hand, as pickles: (what is sent for ``result``, opcodes or an object that
# reduces to a call)
REPLIES = {
    "call a function": "class R:\n    def __reduce__(self):\n        import os\n        return os.system, ('true',)",
    "build an object whose state hides a method": """
import pandas as pd
class R:
    def __reduce__(self):
        return pd.DataFrame.__new__, (pd.DataFrame,), {'equals': dict, '__eq__': dict}""",
    "change a class": """
import pandas as pd
class R:
    def __reduce__(self):
        return slice, (1,), (None, {'__eq__': bool})""",
    "make a class": """
class R:
    def __reduce__(self):
        return type, ('E', (), {'__eq__': bool})""",
    "give masked numbers": r"""
import pandas, pickle
masked = b"\x80\x02cnumpy.ma\nMaskedArray\n(](K\x09K\x09K\x09e\x88t\x81."
class R:
    pass
dumps = pickle.dumps
pickle.dumps = lambda value: masked if type(value) is R else dumps(value)""",
    "call a constructor": """
import pandas as pd
class R:
    def __reduce__(self):
        return pd.ExcelWriter, ('written.xlsx',)""",
    "read what another program pickled": """
import io, torch
class Call:
    def __reduce__(self):
        return exec, ('import sys; sys.exit(0)',)
class R:
    def __reduce__(self):
        import io, torch
        content = io.BytesIO()
        torch.save(Call(), content)
        return torch.storage._load_from_bytes, (content.getvalue(),)""",
}
