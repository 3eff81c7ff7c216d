"""Files that calls read and make."""

from __future__ import annotations

import os
from typing import IO, Any, Optional, Union


class File(os.PathLike):
    """A file, or a URL, that a call reads, or that it has made.

    As an argument of a call it is brought to where the call runs, and stays in the cache there for
    the next one; the function finds a File whose path is that of its copy, which is read-only. A
    function that returns File("name") has the file kept: the caller gets a File that it can read, or
    give to the next call, which then finds it in the cache of its node.
    """

    def __init__(self, path: Union[str, os.PathLike], lfn: str = "", client: Any = None) -> None:
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
        """Open it for reading or, within a function that makes it, for writing."""
        return open(self.path, mode, **how)

    def read_bytes(self) -> bytes:
        """All that it holds, also where it is stored at the server."""
        if self.lfn and self._client is not None and not os.path.exists(self.path):
            return self._client.read(self.lfn)
        with open(self.path, "rb") as f:
            return f.read()

    def read_text(self, encoding: Optional[str] = "utf-8") -> str:
        """read_bytes as text."""
        return self.read_bytes().decode(encoding or "utf-8")
