"""What a job of an Executor executes: one call, or several.

Its text goes along with each job, so a node needs no package but those that the functions
themselves use. It is a module by itself so that the worker for Python need not load fairway.
"""

import base64
import io
import os
import pickle
import sys
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
    """Call what the data say, and write the result into a folder."""
    folder, data = argv
    try:
        if data.startswith("@"):
            with open(data[1:], "rb") as f:
                data = f.read()
        else:
            data = base64.b64decode(data)
        end = data.index(b"\n")
        for entry in data[:end].decode().split("\0"):
            if entry and entry not in sys.path:
                sys.path.append(entry)
        fairway = sys.modules.get("fairway")
        kind = fairway.File if fairway else LocalFile
        calls = loads(data[end + 1:], lambda name: kind(os.path.abspath(name)))
        results = [f(*args, **kwargs) for f, args, kwargs in calls]
        os.makedirs(folder, exist_ok=True)
        made = {}

        def keep(o):
            """The name of a file that the function has made."""
            kinds = (LocalFile, kind, getattr(sys.modules.get("fairway"), "File", kind))
            if not isinstance(o, kinds):
                return None
            path = os.path.realpath(o.path)
            if path not in made:
                made[path] = "%d-%s" % (len(made), os.path.basename(path))
                os.rename(path, os.path.join(folder, made[path]))
            return made[path]

        text = dumps(results, keep)
        with open(os.path.join(folder, "value"), "wb") as f:
            f.write(text)
    except Exception as e:
        fail(e)


def fail(e):
    """End with an exception, which the caller gets as it was raised."""
    trace = "".join(traceback.format_exception(type(e), e, e.__traceback__))
    try:
        text = dumps((e, trace), lambda o: None)
        loads(text, lambda name: None)  # not all that can be pickled can be unpickled
    except Exception:
        text = dumps((None, trace), lambda o: None)
    sys.stdout.flush()
    sys.stderr.write("\n%s%s\n%s" % (MARK, base64.b64encode(text).decode(), trace))
    sys.stderr.flush()
    sys.exit(1)
