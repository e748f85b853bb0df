"""Controls a headless Chromium through two pipes, in Chromium's own protocol. No driver and no
library is needed.
"""

import json
import os
import shutil
import subprocess

from waiting import until

BINARY = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


class Browser:
    """Opens one page of a browser, as a context manager. ``folder`` is for the
    browser's profile.
    """

    def __init__(self, folder):
        # each (read end, write end): commands to the browser, replies from it
        ours, theirs = os.pipe(), os.pipe()

        def pipes():
            for descriptor, number in ((ours[0], 103), (theirs[1], 104), (103, 3), (104, 4)):
                os.dup2(descriptor, number)

        options = "--headless --no-sandbox --disable-gpu --remote-debugging-pipe --no-first-run"
        command = [BINARY, *options.split(), f"--user-data-dir={folder}", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, preexec_fn=pipes, close_fds=False, **quiet)
        os.close(ours[0])
        os.close(theirs[1])
        self.commands, self.replies = os.fdopen(ours[1], "wb", 0), os.fdopen(theirs[0], "rb")
        self.number, self.session = 0, {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.commands.close()
        self.replies.close()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **self.session}
        self.commands.write(json.dumps(message).encode() + b"\0")
        while True:
            text = bytearray()
            while (byte := self.replies.read(1)) != b"\0":
                assert byte, "the browser has ended"
                text += byte
            reply = json.loads(text)
            if reply.get("id") == self.number:
                assert "error" not in reply, reply
                return reply["result"]

    def evaluate(self, script):
        """Return the value of a script's last expression. A promise is awaited."""
        made = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in made, made
        return made["result"].get("value")

    def until(self, script):
        """Wait until the value of a script is true."""
        until(lambda: self.evaluate(script), 30)

    def open(self, address, width=1280):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url="about:blank")
        self.until("location.href === 'about:blank'")
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")
