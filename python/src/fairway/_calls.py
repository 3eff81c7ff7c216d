"""What goes to a job, and what comes back: calls, files and results, pickled."""

from __future__ import annotations

import base64
import functools
import io
import os
import re
import sys
import sysconfig
import tempfile
import types
import zlib
from collections.abc import Callable, Sequence
from typing import IO, Any

import fairway_call

from ._connection import Client, Message
from ._errors import FairwayError, JobFailed, RemoteTraceback
from ._file import File

FOLDER = "calls"  # of what calls make
INLINE = 48_000  # bytes of a call that stand in its job; a larger one is a file

_MAX_MODULES = 60  # that a worker imports before
_LOG_TAIL = 1 << 20  # bytes of a log in which an exception is looked for first
_LIBRARY = tuple(
    os.path.realpath(path) + os.sep
    for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} if path
)
# Types of what pickles are full of, which are looked at first since isinstance with a File takes longer.
_PLAIN = frozenset((type(None), bool, int, float, str, bytes, tuple, list, dict, types.CodeType))
_NAMED = frozenset((types.FunctionType, types.BuiltinFunctionType, types.ModuleType))

Call = tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]


def bootstrap() -> str:
    """The text that a job runs. Short, since each job has it; a node's own fairway_call counts if it is the same."""
    with open(fairway_call.__file__, "rb") as f:
        text = f.read()
    packed = base64.b64encode(zlib.compress(text, 9)).decode()
    return (
        "import sys\ntry:\n from fairway_call import main,CHECKSUM\nexcept ImportError:\n CHECKSUM=0\n"
        f"if CHECKSUM!={zlib.crc32(text)}:\n import base64,zlib\n exec(zlib.decompress(base64.b64decode('{packed}')))\n"
        "main(sys.argv[1:])"
    )


def step(fn: Any) -> str:
    """What people see a call under."""
    while hasattr(fn, "func"):  # of functools.partial
        fn = fn.func
    if type(fn).__name__ == "BatchedCalls":  # of joblib
        fn = fn.items[0][0]
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-")[:60] or "call"


@functools.cache
def is_library(file: str | None) -> bool:
    """Whether the file of a module is installed, or comes with Python; others are those of the program."""
    return file is None or os.path.realpath(file).startswith(_LIBRARY)


class Encoded:
    """Calls as a job gets them.

    Args:
        calls: functions with their arguments.
        folder: of the file that holds them if they are long; None: they are kept in memory.
        begin: is called before the first of a process.

    Attributes:
        data: what is pickled, if it stands in memory; path: of the file that holds it otherwise.
        reads: the files that are arguments, as messages SubmittedInput by name.
        modules: those of libraries that it needs.
    """

    def __init__(self, calls: Sequence[Call], folder: str | None, begin: Callable[[], Any] | None = None) -> None:
        for fn, _, _ in calls:
            if getattr(fn, "__module__", None) == "__main__" and not fairway_call.by_value:
                raise TypeError(f"{getattr(fn, '__qualname__', fn)} is a function of the program itself: put it into a "
                                "module, or `pip install cloudpickle`")
        self.step = step(calls[0][0])
        self.header = search_path(tuple(sys.path), os.getcwd())
        self.reads: dict[str, Message] = {}
        self._modules: set[str] = set()
        out = _Spool(folder)
        out.write(self.header)
        try:
            fairway_call.Pickler(out, self._name).dump((begin, list(calls)))
        except BaseException:
            out.discard()
            raise
        self.path = out.path
        self.data = out.close()
        self.size = len(self.data) if self.path is None else os.path.getsize(self.path)
        self.modules = sorted(name for name in self._modules if _importable(name))[:_MAX_MODULES]

    def argument(self) -> str:
        """Calls that stand in memory as a word of a command."""
        return base64.b64encode(self.data).decode()

    def content(self) -> bytes:
        """Calls as bytes."""
        if self.path is None:
            return bytes(self.data)
        with open(self.path, "rb") as f:
            return f.read()

    def discard(self) -> None:
        """Remove the file that holds them."""
        path, self.path = self.path, None
        if path is not None and os.path.exists(path):
            os.remove(path)

    def _name(self, o: Any) -> str | None:
        kind = type(o)
        if kind in _PLAIN:
            return None
        if kind in _NAMED or issubclass(kind, type):
            self._modules.add(str(o.__name__ if kind is types.ModuleType else o.__module__))
            return None
        if File not in kind.__mro__:
            return None
        file: File = o
        name, message = file.reference()
        self.reads[name] = message
        return name


def _importable(name: str) -> bool:
    module = sys.modules.get(name)
    if module is None or name in ("__main__", "builtins", "fairway_call") or not re.fullmatch(r"[\w.]+", name):
        return False
    return is_library(getattr(module, "__file__", None))


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return os.sep


_BEGAN = _working_folder()  # of the program, when it has loaded this


@functools.lru_cache(maxsize=16)
def search_path(entries: tuple[str, ...], here: str) -> bytes:
    """A line with the folders in which modules are found: those before the ones of Python itself, and others."""
    # An empty one is the working folder. What was loaded before the program went elsewhere lies where it was then.
    found = (os.path.join(place, path) for path in entries for place in (here, _BEGAN))
    folders = list(dict.fromkeys(os.path.normpath(path) for path in found if "\n" not in path))
    standard = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    archive = "python{}{}.zip".format(*sys.version_info)  # of the standard library, which few have
    own = [os.path.basename(path) == archive or (os.path.realpath(path) + os.sep).startswith(_LIBRARY)
           for path in folders]
    first = own.index(True) if True in own else len(folders)
    before = folders[:first]
    after = [path for path in folders[first:] if os.path.basename(path) != archive
             and os.path.realpath(path) not in standard]
    return ("\0".join(before) + "\0\0" + "\0".join(after)).encode() + b"\n"


class _Spool:
    """Takes bytes into memory, and into a file of a folder if they are too many for a job."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self.path: str | None = None
        self._memory = io.BytesIO()
        self._file: IO[bytes] | None = None

    def write(self, data: Any) -> int:
        if self._file is not None:
            return self._file.write(data)
        if self.folder is None or self._memory.tell() + memoryview(data).nbytes <= INLINE:
            return self._memory.write(data)
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        descriptor, self.path = tempfile.mkstemp(prefix="call-", dir=self.folder)
        self._file = open(descriptor, "wb")
        self._file.write(self._memory.getbuffer())
        return self._file.write(data)

    def close(self) -> bytes | memoryview:
        if self._file is None:
            return self._memory.getvalue() if self._memory.tell() <= INLINE else self._memory.getbuffer()
        self._file.close()
        return b""

    def discard(self) -> None:
        if self._file is not None and self.path is not None:
            self._file.close()
            os.remove(self.path)


class Made:
    """What a job has made: its results, and the files that they name.

    Args:
        job: its name.
        writes: messages MadeFile.
        client: by which what is on no disk of this machine is read.
    """

    def __init__(self, job: str, writes: Sequence[Message], client: Client) -> None:
        self.job = job
        self._client = client
        self._paths = {f["lfn"]: f.get("path", "") for f in writes}
        self._value = f"{FOLDER}/{job}/value"

    def open(self) -> IO[bytes]:
        """The results. The error is a JobFailed if there are none."""
        if self._value not in self._paths:
            raise JobFailed(f"the result of {self.job} is not stored")
        try:
            return open(self._paths[self._value], "rb")
        except OSError:
            return io.BytesIO(self._client.read(self._value))

    def file(self, name: str) -> File:
        """A file that is a result."""
        lfn = f"{FOLDER}/{self.job}/{name}"
        return File(self._paths.get(lfn) or lfn, lfn, self._client)

    def load(self, f: IO[bytes]) -> list[Any]:
        """What the calls have returned whose results are next in a file."""
        try:
            found: list[Any] = fairway_call.Unpickler(f, self.file).load()
        except BaseException as e:
            raise JobFailed(f"the result of {self.job} cannot be unpickled: {type(e).__name__}: {e}") from e
        return found

    def remove_value(self) -> None:
        """Remove the results, which have been read, where they are on a disk of this machine."""
        path = self._paths.get(self._value, "")
        if os.path.isabs(path) and os.path.exists(path):
            os.remove(path)


def index_of(f: IO[bytes]) -> tuple[int, list[tuple[int, bytes | None, float]]]:
    """Which calls of a job results are, and of each its place in the file, its error and the seconds that it took."""
    try:
        return fairway_call.read_index(f)
    except Exception as e:  # whatever may be in a file of which the end is missing
        raise JobFailed("the call ended its process, and returned nothing") from e


def log_of(client: Client, job: str, tail: int = 0) -> str:
    """What a job printed; "" if that is nothing."""
    try:
        return client.logs(job, tail)
    except FairwayError:
        return ""


def raised(client: Client, summary: Message) -> BaseException:
    """The exception of a call that failed, as it was raised, with its log and the traceback as cause."""
    pattern = re.compile(rf"\n?^{fairway_call.MARK}(\S+)\n(?![\s\S]*^{fairway_call.MARK})", re.MULTILINE)
    log = log_of(client, summary["name"])
    match = pattern.search(log[-_LOG_TAIL:]) or pattern.search(log)
    if match is None:
        return JobFailed(str(summary.get("reason") or summary["state"]), log)
    whole: str = match.string
    rest = log[: len(log) - len(whole)] + whole[: match.start()] + whole[match.end():]
    return unpickled(base64.b64decode(match.group(1)), rest)


def unpickled(told: bytes, log: str) -> BaseException:
    """An exception that a call has told of."""
    error, trace = fairway_call.loads(told)
    if error is None:
        error = JobFailed(trace.strip().splitlines()[-1], log)
    error.__cause__ = RemoteTraceback(trace)
    try:
        error.log = log
    except AttributeError:
        pass
    return error  # type: ignore[no-any-return]
