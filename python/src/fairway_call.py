"""What a job of an Executor executes: one call, or several.

Its text goes along with each job, so a node needs no package but those that the functions
themselves use. It is a module by itself so that the worker for Python need not load fairway.
"""

import base64
import io
import os
import pickle
import sys
import time
import traceback

__all__ = ["main"]

MARK = "fairway-error:"  # begins the line of standard error that holds a pickled exception


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


def pickler():
    """cloudpickle's, which takes functions by value, or that of the library."""
    return cloudpickle.Pickler if cloudpickle else pickle.Pickler


def dumps(value, persistent_id):
    """Pickle, with names for files."""
    kind = pickler()

    class Pickler(kind):
        def persistent_id(self, o):
            return persistent_id(o)

    out = io.BytesIO()
    Pickler(out, protocol=4).dump(value)
    return out.getvalue()


def loads(data, persistent_load):
    """Undo dumps."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name):
            return persistent_load(name)

    return Unpickler(io.BytesIO(data)).load()


def main(argv):
    """Call what the data say, and write the results into a folder.

    argv is the folder and the data of calls; of several, a time in seconds stands before them, after which,
    from the end of the first one on, no further one is begun. Each of several is told its result, or how it failed, and how long it took.
    """
    folder, data = os.path.abspath(argv[0]), argv[1:]  # functions may change the working folder
    try:
        if len(data) == 1:
            call = Call(folder, data[0])
            value = call.made() + b"\nseconds=%.6f" % call.seconds  # pickle reads no further
        else:
            value = several(folder, data[1:], float(data[0]))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "value"), "wb") as f:
            f.write(value)
    except Exception as e:
        fail(e)


def several(folder, data, most):
    """The results of calls, each pickled by itself: (what was made, pickled error, seconds) of each."""
    results, here, number, began = [], os.getcwd(), 0, 0.0
    for one in data:
        if results and time.perf_counter() > began + most:
            break
        call = Call(folder, one, number)
        made = error = None
        try:
            made = call.made()
        except Exception as e:
            error = told(e)[0]
        number = call.number
        results.append((made, error, call.seconds))
        os.chdir(here)
        began = began or time.perf_counter()  # the first one has imported what it needs
    return pickle.dumps(results, protocol=4)


class Call:
    """Calls that belong together, as they came."""

    def __init__(self, folder, data, number=0):
        self.folder, self.number, self.names = folder, number, {}
        self.seconds = 0.0  # that the functions took, without what had to be imported for them
        if data.startswith("@"):
            with open(data[1:], "rb") as f:
                data = f.read()
        else:
            data = base64.b64decode(data)
        end = data.index(b"\n")
        for entry in data[:end].decode().split("\0"):
            if entry and entry not in sys.path:
                sys.path.append(entry)
        self.data = data[end + 1:]

    def made(self):
        """Make the calls, and return what they have returned, pickled."""
        fairway = sys.modules.get("fairway")
        kind = fairway.File if fairway else LocalFile
        calls = loads(self.data, lambda name: kind(os.path.abspath(name)))
        began = time.perf_counter()
        try:
            results = [f(*args, **kwargs) for f, args, kwargs in calls]
        finally:
            self.seconds = time.perf_counter() - began
        return dumps(results, self.keep)

    def keep(self, o):
        """The name of a file that the function has made, which is moved into the folder."""
        kinds = (LocalFile, getattr(sys.modules.get("fairway"), "File", LocalFile))
        if not isinstance(o, kinds):
            return None
        path = os.path.realpath(o.path)
        if path not in self.names:
            os.makedirs(self.folder, exist_ok=True)
            self.names[path] = "%d-%s" % (self.number, os.path.basename(path))
            self.number += 1
            os.rename(path, os.path.join(self.folder, self.names[path]))
        return self.names[path]


def told(e):
    """An exception with its traceback, pickled, and the traceback."""
    trace = "".join(traceback.format_exception(type(e), e, e.__traceback__))
    try:
        text = dumps((e, trace), lambda o: None)
        loads(text, lambda name: None)  # not all that can be pickled can be unpickled
    except Exception:
        text = dumps((None, trace), lambda o: None)
    return text, trace


def fail(e):
    """End with an exception, which the caller gets as it was raised."""
    text, trace = told(e)
    sys.stdout.flush()
    sys.stderr.write("\n%s%s\n%s" % (MARK, base64.b64encode(text).decode(), trace))
    sys.stderr.flush()
    sys.exit(1)
