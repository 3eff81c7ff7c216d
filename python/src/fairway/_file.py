"""Files that calls read and make."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import IO, Any

from ._connection import Client, Message, Path


class File(os.PathLike[str]):
    """A file, or a URL, that a call reads, or that it has made.

    As an argument of a call it is brought to where the call runs, and stays in the cache there for
    the next one; the function finds a File whose path is that of its copy, which is read-only. A
    function that returns File("name") has the file kept: the caller gets a File that it can read, or
    give to the next call, which then finds it in the cache of its node. What lies in the folder of the
    call is moved then, and anything else copied.

    Args:
        path: its path, or a URL.
        lfn: its logical name, where a call has made it.
        client: by which what is on no disk of this machine is read.
    """

    def __init__(self, path: Path, lfn: str = "", client: Client | None = None) -> None:
        self.path = os.fspath(path)
        self.lfn = lfn  # its logical name, where a call has made it
        self._client = client  # through which it is read, where it is on no disk of this machine

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"File({self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, File) and (self.path, self.lfn) == (other.path, other.lfn)

    def __hash__(self) -> int:
        return hash((self.path, self.lfn))

    def open(self, mode: str = "r", **how: Any) -> IO[Any]:
        """Open it for reading or, within a function that makes it, for writing.

        Args:
            mode: as that of the builtin open.
            **how: what else that takes.
        """
        return open(self.path, mode, **how)

    def read_bytes(self) -> bytes:
        """All that it holds, also where it is stored at the server."""
        if self.lfn and self._client is not None and not os.path.exists(self.path):
            return self._client.read(self.lfn)
        with open(self.path, "rb") as f:
            return f.read()

    def read_text(self, encoding: str | None = "utf-8") -> str:
        """read_bytes as text."""
        return self.read_bytes().decode(encoding or "utf-8")

    def download(self, to: Path) -> None:
        """Write what it holds to a path of this machine."""
        if self.lfn and self._client is not None and not os.path.exists(self.path):
            self._client.download(self.lfn, to)
        else:
            shutil.copyfile(self.path, to)

    def reference(self) -> tuple[str, Message]:
        """Its logical name, and the message SubmittedInput of a job that reads it.

        A file of this machine that has changed has another name: what is cached is not that of before.
        """
        if self.lfn:
            return self.lfn, {"lfn": self.lfn}
        if "://" in self.path:
            mark, path = self.path, self.path
        else:
            path = os.path.abspath(self.path)
            # Not by the time of its status, which a link to it in a cache changes.
            mark = path + (repr(_stamp(path)[:-1]) if os.path.exists(path) else "")
        name = "files/" + hashlib.sha256(mark.encode()).hexdigest()[:12] + "/" + os.path.basename(path)
        return name, {"lfn": name, "file": path}

    def identity(self) -> str:
        """What tells its contents from others: a hash of them or, of a URL or what a call has made, its name."""
        if self.lfn or "://" in self.path:
            return self.lfn or self.path
        path = os.path.abspath(self.path)
        key = (path, *_stamp(path))
        if key not in _hashes:
            with open(path, "rb") as f:
                _hashes[key] = _hash(f)
        return _hashes[key]


def _stamp(path: str) -> tuple[int, ...]:
    """What changes with the contents of a file."""
    s = os.stat(path)
    return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns


def _hash(f: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := f.read(1 << 20):
        digest.update(piece)
    return digest.hexdigest()


_hashes: dict[tuple[Any, ...], str] = {}  # of files, by what changes with their contents
