"""The program fairway: where it is, and runs that this process has opened."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from typing import IO, List, Optional, Sequence

from ._client import Client, FairwayError

_OPEN_TIME = 60.0  # seconds for a server to answer after its start
_PAUSE = 0.02


def program() -> str:
    """The path of the program: FAIRWAY_BIN, that of this package, or the one on the path."""
    named = os.environ.get("FAIRWAY_BIN")
    if named:
        return os.path.join(named, "fairway") if os.path.isdir(named) else named
    beside = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
    found = shutil.which("fairway", path=os.pathsep.join(beside)) or shutil.which("fairway")
    if not found:
        raise FairwayError("unavailable", "the program fairway is not installed: put it on the PATH, or name it with FAIRWAY_BIN")
    return found


class Server:
    """A server that this process has started, as `fairway open` or `fairway run`."""

    def __init__(self, folder: str, words: Sequence[str]) -> None:
        self.folder = folder
        self._said: IO[bytes] = tempfile.TemporaryFile()  # closed by stop
        command: List[str] = [program(), "-C", folder, *words]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said, start_new_session=True
        )

    def wait_open(self, client: Client) -> None:
        """Wait until the server answers. The error says what it said, if it has ended."""
        deadline = time.monotonic() + _OPEN_TIME
        while True:
            try:
                client.call("ListJobs", {"limit": 1})
                return
            except FairwayError as e:
                if self.process.poll() is not None:
                    raise FairwayError("unavailable", f"fairway has ended: {self.said()}") from e
                if time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)

    def said(self) -> str:
        """The end of what it has printed."""
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - 4000))
        return self._said.read().decode("utf-8", "replace").strip()

    def wait(self, timeout: Optional[float] = None) -> int:
        """Wait for its end, and return its exit code."""
        return self.process.wait(timeout)

    def stop(self) -> None:
        """Have it end in order, and end it if it does not."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._said.close()
