import pickle
from collections.abc import Callable, Sequence
from typing import IO, Any, Protocol

class _Writable(Protocol):
    def write(self, data: Any, /) -> object: ...

MARK: str
OTHER_PYTHON: str
CHECKSUM: int
by_value: bool

class Pickler(pickle.Pickler):
    def __init__(self, file: _Writable, name: Callable[[Any], Any]) -> None: ...

class Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], load: Callable[[str], Any]) -> None: ...

def loads(data: bytes, load: Callable[[str], Any] = ...) -> Any: ...
def main(argv: Sequence[str]) -> None: ...
