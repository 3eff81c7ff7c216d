"""What forks for each job: a process that has imported modules before.

Run by a pilot as `python3 worker.py MODULE...`, it does for each job what a new interpreter would
do for the same words: `python3 FILE`, `-c TEXT` or `-m MODULE`; other commands are executed.
A program of your own imports it as `fairway.worker`, and calls serve(main): main(argv) is called in
a process of its own for each job, with the words of its command.
The protocol stands in internal/pilot/warm/doc.go. Standard library only; Python 3.6 and later.
"""

import array
import atexit
import gc
import importlib
import os
import signal
import socket
import sys
import threading
import types

__all__ = ["serve"]

_DESCRIPTORS = 5
_PR_SET_PDEATHSIG = 1


def serve(main=None, modules=()):
    """Fork for each job that the pilot sends, and call main(argv) there; return never.

    Without main a job is what `python3` would make of its words. modules are imported before; one that
    ends in a question mark may be missing. What main returns is the exit code, as with sys.exit. Where
    no pilot is, main(sys.argv[1:]) is called at once, without the word `--` that stands before the
    words of a command.
    """
    control = os.environ.pop("FAIRWAY_WORKER_FD", None)
    if control is None:
        words = sys.argv[1:]
        if "--" in words:
            words = words[words.index("--") + 1:]
        sys.exit((main or _python)(words))
    for name in modules:
        try:
            importlib.import_module(name.rstrip("?"))
        except ImportError:
            if not name.endswith("?"):
                raise
    control = socket.socket(fileno=int(control))
    control.set_inheritable(False)
    libc = _libc()
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()
    while True:
        descriptors = _receive(control)
        if not descriptors:
            os._exit(0)
        pid = _fork_away(control)
        if pid == 0:
            _become(descriptors, libc, main or _python)
        control.sendall(b"%d\n" % pid)
        for fd in descriptors:
            os.close(fd)


def _libc():
    """The C library, loaded before the first fork; None where there is none."""
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True)
    except Exception:
        return None


def _receive(control):
    """The descriptors of the next job; none: the pilot has ended."""
    fds = array.array("i")
    data, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(_DESCRIPTORS * fds.itemsize))
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(body[: len(body) - len(body) % fds.itemsize])
    return list(fds) if data else []


def _fork_away(control):
    """Fork a process whose parent is the pilot. It returns 0 there, and its number here."""
    number, told = os.pipe()
    between = os.fork()
    if between == 0:
        try:
            pid = os.fork()
        except OSError:
            os._exit(1)
        if pid == 0:
            os.close(number)
            os.close(told)
            control.close()
            return 0
        os.write(told, b"%d" % pid)
        os._exit(0)
    os.close(told)
    text = os.read(number, 32)
    os.close(number)
    os.waitpid(between, 0)  # then its child is the pilot's
    return int(text or -1)


def _become(descriptors, libc, main):
    """Be the job."""
    code = 1
    try:
        stdin, stdout, stderr, go, request = descriptors
        if os.read(go, 1) == b"":
            os._exit(0)
        os.setsid()
        with os.fdopen(request, "rb") as f:
            f.seek(0)
            path, folder, parent, count, *words = f.read().split(b"\0")[:-1]
        argv = [os.fsdecode(word) for word in words[: int(count)]]
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != int(parent):
            os._exit(1)
        for fd, to in ((stdin, 0), (stdout, 1), (stderr, 2)):
            os.dup2(fd, to)
            os.close(fd)
        os.close(go)
        os.chdir(folder)
        os.environ.clear()
        for entry in words[int(count):]:
            name, _, value = entry.partition(b"=")
            os.environb[name] = value
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        gc.unfreeze() if hasattr(gc, "unfreeze") else None
        if main in _interpreters:
            code = _ending(lambda: main(argv, os.fsdecode(path)))
        else:
            code = _ending(lambda: main(argv))
    except BaseException:  # nothing of the worker may run in the job
        sys.excepthook(*sys.exc_info())
    finally:
        _flush()
        os._exit(code)


def _ending(call):
    """The exit code, as the interpreter would have it."""
    try:
        value = call()
    except SystemExit as e:
        value = e.code
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        value = 130
    except BaseException:
        sys.excepthook(*sys.exc_info())
        value = 1
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    if value is None:
        return 0
    if isinstance(value, int):
        return value & 0xFF
    print(value, file=sys.stderr)
    return 1


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def _python(argv, path=None):
    """Do what a new interpreter would do for these words."""
    words, unbuffered = list(argv[1:]), False
    while words and words[0] == "-u":
        words, unbuffered = words[1:], True
    ours = path is not None and _is_this(path)
    kind = words[0] if words else ""
    if not ours or not words or (kind.startswith("-") and (kind not in ("-c", "-m") or len(words) < 2)):
        _flush()
        os.execve(path or argv[0], argv, dict(os.environ))
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    if unbuffered and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True, write_through=True)
    if kind == "-m":
        import runpy

        sys.argv = ["-m"] + words[2:]
        sys.path.insert(0, os.getcwd())
        return runpy._run_module_as_main(words[1], alter_argv=True)
    if kind == "-c":
        sys.argv = ["-c"] + words[2:]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), main.__dict__)
        return None
    sys.argv = words
    sys.path.insert(0, os.path.dirname(os.path.realpath(kind)))
    main.__file__ = kind
    with open(kind, "rb") as f:
        text = f.read()
    exec(compile(text, kind, "exec"), main.__dict__)
    return None


def _is_this(path):
    """Whether a program is this interpreter: it was started by the same path, or is the same file."""
    if path == _PROGRAM:
        return True
    try:
        return os.path.samefile(path, sys.executable)
    except OSError:
        return False


_PROGRAM = os.environ.pop("FAIRWAY_WORKER_PROGRAM", None)

# What does as new interpreters would: main(argv, path), with the path of the interpreter.
_interpreters = [_python]
_MEMORY = "/proc/self/fd/"  # where the pilot passes files that have no name


def _execute(path):
    """The names of a file that the pilot has passed, which is closed: jobs do not see it."""
    space = {}
    with open(path, "rb") as f:
        text = f.read()
    os.close(int(os.path.basename(path)))
    exec(compile(text, "fairway:R", "exec"), space)
    return space


if __name__ == "__main__":
    sys.modules["fairway_worker"] = sys.modules["__main__"]
    del sys.path[0]
    if sys.argv[1:2] and sys.argv[1].startswith(_MEMORY):
        _interpreters.append(_execute(sys.argv[1])["prepare"](sys.argv[2:]))
        del sys.argv[1:]
    if sys.argv[0].startswith(_MEMORY):
        os.close(int(os.path.basename(sys.argv[0])))
    serve(_interpreters[-1], modules=sys.argv[1:])
