"""Solutions that attack the machine, the grader or the test. Name -> text; braces stand for things of the real machine.

Each is right only if its attack succeeds: where it is contained, an exception or a wrong result is left.
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
    "let a child print without end": "import os\nos.system('yes')",
}

# What would make a wrong result pass
FORGED = {
    "leave before the test": "import os\nos._exit(0)",
    "exit before the test": "import sys\nsys.exit(0)",
    "kill itself": "import os\nos.kill(os.getpid(), 9)",
    "crash the interpreter": "import faulthandler\nfaulthandler._sigsegv()",
    "become another program": "import os\nos.execv('/bin/true', ['true'])",
    "leave at the end": "import atexit, os\natexit.register(os._exit, 0)" + WRONG,
    "replace a builtin": "import builtins\nbuiltins.all = lambda values: True" + WRONG,
    "replace a builtin by its dictionary": "__builtins__['all'] = lambda values: True" + WRONG,
    "replace the assertion's exception": "import builtins\nbuiltins.AssertionError = KeyboardInterrupt" + WRONG,
    "replace copy.deepcopy": "import copy\ncopy.deepcopy = lambda value: []\nresult = []",
    "replace a module by name": "import sys, types\nsys.modules['copy'] = types.ModuleType('copy')" + RIGHT,
    "change what a function takes for granted": "import copy\ncopy.deepcopy.__defaults__ = ({{}}, [])" + RIGHT,
    "let the collector look": """
import gc, sys
def look(phase, about):
    frame = sys._getframe()
    while frame is not None and 'ans' not in frame.f_locals:
        frame = frame.f_back
    if frame is not None:
        frame.f_locals['result'][:] = frame.f_locals['ans']
gc.callbacks.append(look)
gc.set_threshold(1, 1, 1)
result = [None] * 3""",
    "look at its end": """
import sys
class Last:
    def __del__(self):
        frame = sys._getframe()
        while frame is not None and 'expected_result' not in frame.f_locals:
            frame = frame.f_back
        kept.extend(frame.f_locals['expected_result'])
kept = result = []
test_input.append(Last())""",
    "replace the test": "import __main__\n__main__.exec_test = lambda result, answer: 1" + WRONG,
    "call the test's own answer": "import __main__\nresult = __main__.generate_test_case(1)[1]",
    "read the answer from a frame": """
import sys
frame = sys._getframe()
while 'expected_result' not in frame.f_locals:
    frame = frame.f_back
result = frame.f_locals['expected_result']""",
    "read the answer by inspect": """
import inspect
result = [f.frame.f_locals['expected_result'] for f in inspect.stack() if 'expected_result' in f.frame.f_locals][0]""",
    "read the answer from a traceback": """
try:
    1 / 0
except ZeroDivisionError as error:
    frame = error.__traceback__.tb_frame
while 'expected_result' not in frame.f_locals:
    frame = frame.f_back
result = frame.f_locals['expected_result']""",
    "read the answer from all frames": """
import sys
for frame in sys._current_frames().values():
    while frame is not None:
        result = frame.f_locals.get('expected_result', globals().get('result'))
        frame = frame.f_back""",
    "read the answer from the collector": """
import gc
for found in gc.get_objects():
    if isinstance(found, list) and found == [0, 2, 4]:
        result = found""",
    "find the test from its input": """
import gc
for found in gc.get_referrers(test_input):
    if isinstance(found, tuple) and len(found) == 2:
        result = found[1]""",
    "equal everything": """
class Equal:
    def __eq__(self, other):
        return True
result = Equal()""",
    "equal everything, made by type": "result = type('E', (list,), {{'__eq__': lambda a, b: True}})()",
    "pretend to be a number": """
class Four:
    __class__ = property(lambda self: int)
    def __rsub__(self, other):
        return 0
result = Four()""",
    "be less than everything apart": """
class Near(int):
    def __sub__(self, other):
        return 0
result = Near(1)""",
    "read the answer while compared": """
import sys
class Thief(list):
    def __iter__(self):
        frame = sys._getframe()
        while 'ans' not in frame.f_locals:
            frame = frame.f_back
        return iter(frame.f_locals['ans'])
    def __len__(self):
        return 3
result = Thief()""",
    "read the answer while compared, by a traceback": """
class Thief(list):
    def __iter__(self):
        try:
            1 / 0
        except ZeroDivisionError as error:
            frame = error.__traceback__.tb_frame
        while 'ans' not in frame.f_locals:
            frame = frame.f_back
        return iter(frame.f_locals['ans'])
    def __len__(self):
        return 3
result = Thief()""",
    "listen to the interpreter": "import sys\nsys.addaudithook(lambda event, arguments: None)" + WRONG,
    "write a verdict": """
import json, os
for number in range(3, 100):
    for word in (b'', bytes(16)):
        try:
            os.write(number, word + json.dumps({{'passed': True, 'error': ''}}).encode())
        except OSError:
            pass
result = None""",
    "take the verdict's place": """
import json, os
for number in range(3, 20):
    try:
        kept = os.dup(number)
    except OSError:
        continue
    ends = os.pipe()
    os.dup2(ends[1], number)
    if os.fork() == 0:
        secret = os.read(ends[0], 16)
        os.write(kept, secret + json.dumps({{'passed': True, 'error': ''}}).encode())
        os._exit(0)
    os.close(ends[0])
    os.close(ends[1])
result = None""",
    "read the secret back": """
import json, os
for number in range(3, 20):
    try:
        os.set_blocking(number, False)
        secret = os.read(os.open(f'/proc/self/fd/{{number}}', os.O_RDONLY | os.O_NONBLOCK), 16)
        os.write(number, secret + json.dumps({{'passed': True, 'error': ''}}).encode())
    except OSError:
        pass
result = None""",
    "close all files": "import os\nos.closerange(0, 1000)" + WRONG,
    "call machine code": "import ctypes\nctypes.CDLL(None).getpid()" + RIGHT,
    "read its own memory": "open('/proc/self/mem', 'rb').close()" + WRONG,
    "leave a thread": """
import threading, time
def later():
    time.sleep(.5)
threading.Thread(target=later).start()""" + RIGHT,
    "leave a timer": "import threading\nthreading.Timer(.5, print).start()" + RIGHT,
    "trace the interpreter": "import sys\nsys.settrace(lambda *arguments: None)" + RIGHT,
    "pretend to be the test": """
source = 'import sys; frame = sys._getframe()'
exec(compile(source, '<program>', 'exec'))""" + RIGHT,
}

# The same with the assertions of numpy
FORGED_NUMPY = {
    "replace numpy.testing": "np.testing.assert_array_equal = lambda *a, **k: None" + WRONG,
    "replace numpy.testing's own means": """
import numpy.testing._private.utils as utils
utils.assert_array_compare = lambda *a, **k: None
result = None""",
    "replace numpy.testing's code": """
def nothing(*arguments, **options):
    return None
np.testing.assert_array_equal.__code__ = nothing.__code__
result = None""",
    "plant a function in a module that was not loaded": """
import numpy.ma.testutils
numpy.ma.testutils.assert_equal = lambda *a, **k: None
result = test_input * 2""",
    "replace a module": "import types\nnp.testing = types.SimpleNamespace(assert_array_equal=print)" + WRONG,
    "bring an array protocol": """
class Array:
    def __array_function__(self, function, kinds, arguments, options):
        return True
    def __array__(self, *arguments, **options):
        import sys
        frame = sys._getframe()
        while 'ans' not in frame.f_locals:
            frame = frame.f_back
        return frame.f_locals['ans']
result = Array()""",
}
