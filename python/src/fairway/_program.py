"""The program fairway: where it is, and servers that this process has started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import weakref
from collections.abc import Sequence
from typing import IO

from ._connection import Client
from ._errors import FairwayError

_OPEN_TIME = 60.0  # seconds for a server to answer after its start
_STOP_TIME = 30.0  # seconds for a server to end in order
_PAUSE = 0.02


def program() -> str:
    """The path of the program: FAIRWAY_BIN, that of this package, or the one on the path.

    Raises:
        FairwayError: there is none.
    """
    named = os.environ.get("FAIRWAY_BIN")
    if named:
        return os.path.join(named, "fairway") if os.path.isdir(named) else named
    beside = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
    found = shutil.which("fairway", path=os.pathsep.join(beside)) or shutil.which("fairway")
    if not found:
        raise FairwayError(
            "unavailable", "the program fairway is not installed: put it on the PATH, or name it with FAIRWAY_BIN")
    return found


def version() -> str:
    """The version of the program, or "" where there is none."""
    try:
        words = subprocess.run([program(), "version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    except (FairwayError, OSError, subprocess.CalledProcessError):
        return ""
    return words[1] if len(words) > 1 else ""


def check_version(python: str) -> None:
    """Have an interpreter of this machine be of the version of this one, or raise ValueError."""
    try:
        words = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        found = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as e:
        raise ValueError(f"python={python!r} is no interpreter of Python: {e}") from e
    own = "{}.{}".format(*sys.version_info)
    if found != own:
        raise ValueError(f"python={python!r} is Python {found}, which cannot read calls of this Python {own}: name one "
                         f"of version {own}")


class Server:
    """A server that this process has started, as `fairway open` or `fairway run`.

    Args:
        folder: in which it runs.
        words: of its command, without the program.
        stdin: what it reads; with subprocess.PIPE the pipe is open until leave or stop, or this program ends.
    """

    def __init__(self, folder: str, words: Sequence[str], stdin: int = subprocess.DEVNULL) -> None:
        self.folder = folder
        self._output: IO[bytes] = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program(), "-C", folder, *words], stdin=stdin, stdout=self._output, stderr=self._output,
            start_new_session=True,
        )
        _servers.add(self)

    def wait_open(self, client: Client) -> None:
        """Wait until the server answers. The error holds its output, if it has ended."""
        deadline = time.monotonic() + _OPEN_TIME
        while not client.answers():
            if self.process.poll() is not None:
                raise FairwayError("unavailable", f"fairway has ended: {self.output()}")
            if time.monotonic() > deadline:
                raise FairwayError("unavailable", f"fairway does not answer in {self.folder}: {self.output()}")
            time.sleep(_PAUSE)

    def output(self) -> str:
        """The end of what it has printed."""
        self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, self._output.tell() - 4000))
        return self._output.read().decode("utf-8", "replace").strip()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return its exit code."""
        return self.process.wait(timeout)

    def leave(self) -> None:
        """Close what it reads: it ends when no program uses it any more."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.returncode = self.process.returncode or 0  # nobody waits for it
        self._output.close()

    def stop(self) -> None:
        """Have it end in order, and end it if it does not."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_TIME)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._output.close()


_servers: weakref.WeakSet[Server] = weakref.WeakSet()


def _forked() -> None:
    """A fork does not keep servers of the program that it is a fork of."""
    for server in list(_servers):
        if server.process.stdin is not None:
            server.process.stdin.close()


os.register_at_fork(after_in_child=_forked)
