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

# What would end the test early, find it by name, or write its verdict
FORGED = {
    "leave before the test": "import os\nos._exit(0)",
    "exit before the test": "import sys\nsys.exit(0)",
    "kill itself": "import os\nos.kill(os.getpid(), 9)",
    "crash the interpreter": "import faulthandler\nfaulthandler._sigsegv()",
    "become another program": "import os\nos.execv('/bin/true', ['true'])",
    "leave at the end": "import atexit, os\natexit.register(os._exit, 0)" + WRONG,
    "replace the test": "import __main__\n__main__.exec_test = lambda result, answer: 1" + WRONG,
    "call the test's own answer": "import __main__\nresult = __main__.generate_test_case(1)[1]",
    "write a verdict": """
import os
for number in range(3, 100):
    for word in (b'', bytes(16)):
        try:
            os.write(number, word + b'\\1')
        except OSError:
            pass
result = None""",
    "take the verdict's place": """
import os
for number in range(3, 20):
    try:
        kept = os.dup(number)
    except OSError:
        continue
    ends = os.pipe()
    os.dup2(ends[1], number)
    if os.fork() == 0:
        secret = os.read(ends[0], 16)
        os.write(kept, secret + b'\\1')
        os._exit(0)
    os.close(ends[0])
    os.close(ends[1])
result = None""",
    "read the secret back": """
import os
for number in range(3, 20):
    try:
        os.set_blocking(number, False)
        secret = os.read(os.open(f'/proc/self/fd/{{number}}', os.O_RDONLY | os.O_NONBLOCK), 16)
        os.write(number, secret + b'\\1')
    except OSError:
        pass
result = None""",
    "close all files": "import os\nos.closerange(0, 1000)" + WRONG,
}
