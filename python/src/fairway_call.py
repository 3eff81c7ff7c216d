"""What a job of an Executor executes: one call, or several.

Its text goes along with each job, so a node needs no package but those that the functions
themselves use. It is a module by itself so that the worker for Python need not load fairway. An old
Python has to read it, to say that it is too old.
"""

import _thread
import atexit
import base64
import io
import os
import pickle
import shutil
import socket
import struct
import sys
import threading
import time
import traceback
import types
import zlib

__all__ = ["main"]

MARK = "fairway-error:"  # begins the line of standard error that holds a pickled exception
OTHER_PYTHON = "the call was made by Python "  # begins how a call of another version is refused
ENDING = 1.0  # seconds that threads and processes of the functions have to end after them
PROTOCOL = min(5, pickle.HIGHEST_PROTOCOL)
PATIENCE = 10.0  # seconds for which the other side of a channel is waited for
MAX_ANSWER = 1 << 20  # bytes of results that go over a channel; more stay in the file of the job
MAX_GIVEN = 16 << 20  # bytes of further calls that a channel gives
_UNKNOWN_USER = 65534  # as which a container sees all users that it has not
_END = b"fairway."  # ends a file of results, after the place of its index


def checksum(path):
    """What tells this text from another version of it."""
    with open(path, "rb") as f:
        return zlib.crc32(f.read())


CHECKSUM = checksum(__file__) if "__file__" in globals() else 0


class LocalFile(os.PathLike):
    """Stands for fairway.File where that is not installed."""

    def __init__(self, path, lfn="", client=None):
        self.path = os.fspath(path)
        self.lfn = lfn

    def __fspath__(self):
        return self.path

    def open(self, mode="r", **how):
        return open(self.path, mode, **how)

    def read_bytes(self):
        with open(self.path, "rb") as f:
            return f.read()

    def read_text(self, encoding="utf-8"):
        return self.read_bytes().decode(encoding)


try:
    import cloudpickle
except ImportError:
    cloudpickle = None

by_value = cloudpickle is not None  # functions of the program itself can be taken along


def reduced_code(code):
    """What cloudpickle makes of code, with the name of its file, so that tracebacks show lines of it."""
    make, parts = cloudpickle.Pickler.dispatch_table[types.CodeType](code)
    return make, tuple(code.co_filename if part == "<dynamic-code>" else part for part in parts)


class Pickler((cloudpickle or pickle).Pickler):
    """Pickles into a file, with names for what name(object) names. cloudpickle's takes functions by value."""

    if cloudpickle:
        dispatch_table = cloudpickle.Pickler.dispatch_table.new_child({types.CodeType: reduced_code})

    def __init__(self, file, name):
        self.persistent_id = name  # and no method that calls it: it is asked for each object
        super().__init__(file, protocol=PROTOCOL)

    def reducer_override(self, o):
        managers = sys.modules.get("multiprocessing.managers")
        if managers and isinstance(o, managers.BaseProxy) and isinstance(o._token.address, str):
            make, parts = o.__reduce__()
            parts[-1]["authkey"] = bytes(o._authkey)  # its socket is a file that only this user can reach
            return make, parts
        return super().reducer_override(o) if cloudpickle else NotImplemented


class Unpickler(pickle.Unpickler):
    """Undoes Pickler. load(name) is what has a name."""

    def __init__(self, file, load):
        super().__init__(file)
        self.load_named = load

    def persistent_load(self, name):
        return self.load_named(name)


def dumps(value, name=lambda o: None):
    out = io.BytesIO()
    Pickler(out, name).dump(value)
    return out.getvalue()


def loads(data, load=lambda name: None):
    return Unpickler(io.BytesIO(data), load).load()


def main(argv):
    """Call what the data say, and write the results into a folder. It does not return.

    argv is the folder, the version of Python that the data are of, a time in seconds or nothing, the name of a
    channel or nothing, and the data of calls. With a time each call is told its result, or how it failed, and how
    long it took; none is begun after that time, from the end of the first one on.
    """
    folder, version, most, channel, data = os.path.abspath(argv[0]), argv[1], argv[2], argv[3], argv[4:]
    try:
        own = "%d.%d" % sys.version_info[:2]
        if version != own:
            raise Refused(OTHER_PYTHON + "%s, and the Python that is to make it, %s, is %s: let python= of the "
                          "Executor name one of the same version" % (version, sys.executable, own))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "value"), "w+b") as f:
            if most:
                several(folder, data, float(most), Channel(channel, os.path.basename(folder)), f)
            else:
                call = Call(folder, data[0])
                call.make(f)
                write_index(f, 0, [(0, None, call.seconds)])
    except BaseException as e:  # also SystemExit: it is not the program that ends
        leave(fail(e))
    leave(0)


def write_index(f, batch, index):
    """End a file of results: (where it begins, pickled error, seconds) of each, and which calls of the job they are."""
    at = f.tell()
    pickle.dump((batch, index), f, protocol=PROTOCOL)
    f.write(struct.pack(">Q", at) + _END)


def read_index(f):
    """What write_index was given. The error is an EOFError if it was not reached."""
    size = f.seek(0, os.SEEK_END)
    f.seek(max(0, size - 16))
    ending = f.read()
    if ending[8:] != _END:
        raise EOFError
    f.seek(struct.unpack(">Q", ending[:8])[0])
    return pickle.load(f)


def leave(code):
    """End, as the interpreter does but at once after ENDING: nobody waits for more than the result."""
    def flush():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        os._exit(code)

    def watch():
        time.sleep(ENDING)
        flush()

    _thread.start_new_thread(watch, ())
    try:
        threading._shutdown()  # pools of processes end theirs, which multiprocessing waits for after that
        atexit._run_exitfuncs()
    except BaseException:
        pass
    flush()


class Refused(Exception):
    """A sentence for who has made the call."""


def several(folder, data, most, channel, f):
    """Make calls, each pickled by itself, and those that the channel gives after them."""
    here, number, batch = os.getcwd(), 0, 0
    while data:
        index, began, left = [], 0.0, number
        for one in data:
            if index and time.perf_counter() > began + most:
                break
            if batch or index:  # the first one has the folder of the job
                enter_empty(os.path.join(here, ".fairway-call"))
            call, error, at = Call(folder, one, number), None, f.tell()
            try:
                call.make(f)
            except BaseException as e:
                if len(data) == 1 and not batch:
                    raise  # the job fails
                error = told(e)[0]
                f.seek(at)
                f.truncate()
            index.append((at, error, call.seconds))
            number = call.number
            os.chdir(here)
            began = began or time.perf_counter()  # the first one has imported what it needs
        write_index(f, batch, index)
        # Errors are told with the log of the job, and files are there when it has ended.
        whole = number == left and not any(error for _, error, _ in index)
        data = channel.exchange(f) if whole else None
        batch += 1
    channel.close()


def enter_empty(folder):
    """Go into a folder in which there is nothing. One that is empty is used again, since to make one takes long."""
    try:
        if os.listdir(folder):
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
    except OSError:
        os.mkdir(folder)
    os.chdir(folder)


class Channel:
    """The connection of a job to the program that has submitted it, if that is on this machine and of the same user.

    It takes results as soon as they are there, and gives further calls.
    """

    def __init__(self, name, job):
        self.socket = None
        if not name:
            return
        try:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE)
            self.socket.connect("\0" + name)
            if not of_this_user(self.socket):
                raise OSError("the channel is that of another user")
            send(self.socket, job.encode())
        except OSError:
            self.close()
            self.socket = None

    def close(self):
        if self.socket is not None:
            self.socket.close()

    def exchange(self, f):
        """Give the results in a file away, and get the data of further calls. None: there are none."""
        if self.socket is None or f.tell() > MAX_ANSWER:
            return None
        f.seek(0)
        try:
            send(self.socket, f.read())
            further = receive(self.socket, MAX_GIVEN)
        except OSError:
            return None
        f.seek(0)
        f.truncate()
        return pickle.loads(further) if further else None


def of_this_user(connection):
    """Whether the other end of a connection is a process of the user that this one is of."""
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return user == os.geteuid() != _UNKNOWN_USER


def framed(message):
    """A message as it goes over a channel."""
    return struct.pack(">Q", len(message)) + message


def send(connection, message):
    connection.sendall(framed(message))


def receive(connection, most):
    """The next message, of so many bytes at most. The error is an OSError if there is none."""
    return _exactly(connection, _size(_exactly(connection, 8), most))


def whole(received, most):
    """Take from what was received, a bytearray, the messages that are whole, of so many bytes at most."""
    messages = []
    while len(received) >= 8 and len(received) >= 8 + _size(received, most):
        size = _size(received, most)
        messages.append(bytes(received[8:8 + size]))
        del received[:8 + size]
    return messages


def _size(received, most):
    size, = struct.unpack_from(">Q", received)
    if size > most:
        raise OSError("a message of %d bytes is too long" % size)
    return size


def _exactly(connection, size):
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise OSError("the connection has ended")
        data += piece
    return bytes(data)


class Call:
    """Calls that belong together, as they came."""

    begun = False  # the initializer of this process was called

    def __init__(self, folder, data, number=0):
        self.folder, self.number, self.names = folder, number, {}
        self.sandbox = os.path.realpath(os.getcwd())
        self.seconds = 0.0  # that the functions took, without what had to be imported for them
        if isinstance(data, bytes):  # it came over a channel
            self.data = io.BytesIO(data)
        else:
            self.data = open(data[1:], "rb") if data.startswith("@") else io.BytesIO(base64.b64decode(data))
        header = self.data.readline()[:-1].decode()
        if header:
            before, after = (part.split("\0") for part in header.split("\0\0"))
            entries = before + [entry for entry in sys.path if entry] + after  # an empty one would be the sandbox
            sys.path[:] = dict.fromkeys(entry for entry in entries if entry)

    def make(self, out):
        """Make the calls, and pickle what they have returned into a file."""
        fairway = sys.modules.get("fairway")
        kind = fairway.File if fairway else LocalFile
        with self.data:
            try:
                begin, calls = Unpickler(self.data, lambda name: kind(os.path.abspath(name))).load()
            except SystemExit as e:
                raise Refused("the call cannot be unpickled: %s: %s" % (type(e).__name__, e)) from e
        if begin is not None and not Call.begun:
            begin()
            Call.begun = True
        began = time.perf_counter()
        try:
            process = os.getpid()
            results = [f(*args, **kwargs) for f, args, kwargs in calls]
            if os.getpid() != process:
                os._exit(0)  # a function has forked, and has returned in the fork as well
        finally:
            self.seconds = time.perf_counter() - began
        Pickler(out, self.keep).dump(results)

    def keep(self, o):
        """The name of a file that is a result, which is put into the folder. What is not of this call stays there."""
        kinds = (LocalFile, getattr(sys.modules.get("fairway"), "File", LocalFile))
        if not isinstance(o, kinds):
            return None
        path = os.path.abspath(o.path)
        if path not in self.names:
            name = self.names[path] = "%d-%s" % (self.number, os.path.basename(path))
            self.number += 1
            os.makedirs(self.folder, exist_ok=True)
            to, real = os.path.join(self.folder, name), os.path.realpath(path)
            if real == path and real.startswith(self.sandbox + os.sep) and os.lstat(path).st_nlink == 1:
                shutil.move(path, to)
            else:
                shutil.copyfile(path, to)
        return self.names[path]


def told(e):
    """An exception with its traceback, pickled, and the traceback. One that cannot be pickled is None."""
    trace = "".join(traceback.format_exception(type(e), e, e.__traceback__))
    trace += "\n" + str(e) if isinstance(e, Refused) else ""
    try:
        text = dumps((None if isinstance(e, Refused) else e, trace))
        loads(text)  # not all that can be pickled can be unpickled
    except Exception:
        text = dumps((None, trace))
    return text, trace


def fail(e):
    """Tell of an exception, which the caller gets as it was raised. It returns the exit code."""
    text, trace = told(e)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        pass
    line = "\n%s%s\n%s" % (MARK, base64.b64encode(text).decode(), trace)
    with open(2, "wb", closefd=False) as f:  # whatever became of sys.stderr
        f.write(line.encode("utf-8", "backslashreplace"))
    return 1
