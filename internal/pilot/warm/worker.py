"""What forks for each job: a process that has imported modules before.

Run by a pilot as `python3 worker.py MODULE...`, it does for each job what a new interpreter would
do for the same words: `python3 FILE`, `-c TEXT` or `-m MODULE`; other commands are executed.
A program of your own imports it as `fairway.worker`, and calls serve(main): main(argv) is called in
a process of its own for each job, with the words of its command.
The protocol stands in internal/pilot/warm/doc.go. Standard library only; Python 3.6 and later.
"""

import sys

_BARE = frozenset(sys.modules)  # what an interpreter has before it imports anything

import array
import atexit
import gc
import importlib.machinery
import io
import os
import signal
import socket
import threading
import time
import types
import weakref

__all__ = ["serve"]

_DESCRIPTORS = 5
_PR_SET_PDEATHSIG = 1

# What this process was started with, before a module changes it: jobs of other programs have it.
_STARTED = dict(os.environ)
_UMASK = os.umask(0o22)
os.umask(_UMASK)
_SIGNALS = sorted(getattr(signal, "valid_signals", lambda: range(1, signal.NSIG))())
# The interpreter ignores two signals for itself, which a new program does not.
_IGNORED = {s for s in _SIGNALS if signal.getsignal(s) is signal.SIG_IGN} - {signal.SIGPIPE, signal.SIGXFSZ}


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
    known = frozenset(sys.modules)
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()
    while True:
        descriptors = _receive(control)
        if not descriptors:
            os._exit(0)
        pid = _fork_away(control)
        if pid == 0:
            _become(descriptors, libc, main or _python, known)
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


def _become(descriptors, libc, main, known):
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
        _environment.update(entry.partition(b"=")[::2] for entry in words[int(count):])
        _environment.pop(b"", None)
        _take_variables(main in _interpreters[1:])
        sys.orig_argv = list(argv)
        if "numpy.random" in sys.modules:  # which numpy imports when it is asked for
            sys.modules["numpy.random"].seed()
        if "tempfile" in sys.modules:
            sys.modules["tempfile"].tempdir = None
        if main in _interpreters:
            code = _ending(lambda: main(argv, os.fsdecode(path)), known)
        else:
            code = _ending(lambda: main(argv), known)
    except BaseException:  # nothing of the worker may run in the job
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(_flush() or code)


_environment = {}  # of the job, as the pilot has it


def _take_variables(other):
    """Have the variables of the job, and what is set between a pilot and the interpreter, if that runs the job."""
    os.environ.clear()
    os.environb.update(_environment)
    if hasattr(time, "tzset"):
        time.tzset()
    if other:
        return
    for name, value in _STARTED.items():
        if name not in os.environ and name not in _SHELLS and not name.startswith("FAIRWAY_"):
            os.environ[name] = value
    if not os.environ.get("LC_CTYPE") and _STARTED.get("LC_CTYPE"):
        os.environ["LC_CTYPE"] = _STARTED["LC_CTYPE"]  # by the interpreter, in the locale C


_SHELLS = ("PWD", "OLDPWD", "SHLVL", "_")  # what shells set for themselves


def _execute_instead(path, argv):
    """Be another program, which finds what it would find without a worker."""
    _flush()
    for number in _SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN and number not in _IGNORED:
            signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(_UMASK)
    try:
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2:
                _keep(fd)
    except OSError:
        pass  # there is no /proc
    try:
        os.execve(path, argv, _environment)
    except OSError as e:
        why = os.strerror(e.errno)
        os.write(2, os.fsencode("start %s: %s\n" % (path, why[:1].lower() + why[1:])))
        os._exit(127)


def _keep(fd):
    """Keep a descriptor of the worker's modules from another program."""
    try:
        os.set_inheritable(fd, False)
    except OSError:
        pass  # that by which it was looked


def _ending(call, known):
    """The exit code, as the interpreter would have it."""
    interrupted = False
    try:
        value = call()
    except SystemExit as e:
        value = e.code
    except KeyboardInterrupt:
        _report()
        value, interrupted = 130, True
    except BaseException:
        _report()
        value = 1
    if value is not None and not isinstance(value, int):
        _flush()
        print(value, file=sys.stderr)
        value = 1
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        _report()
    _finalize(known)
    if interrupted and not _flush():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 0 if value is None else value & 0xFF


def _report():
    """Say what was raised as the interpreter would, from the first line of the job on."""
    kind, value, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    try:
        sys.excepthook(kind, value.with_traceback(trace), trace)
    except BaseException:
        sys.__excepthook__(*sys.exc_info())


def _finalize(known):
    """End what the job has made, as at the end of an interpreter: files are written, destructors called.

    What was there before the fork stays: it is no part of the job, and to look at it takes long.
    """
    left = []
    for name in [name for name in list(sys.modules) if name not in known] + ["__main__"]:
        module = sys.modules.pop(name, None)
        if isinstance(module, types.ModuleType):
            left.append(weakref.ref(module))
        del module
    _collect()
    for reference in reversed(left):
        module = reference()
        if module is not None and module.__dict__ is not globals():
            for private in (True, False):
                for name in list(module.__dict__):
                    if name != "__builtins__" and private == (name[:1] == "_" and name[1:2] != "_"):
                        module.__dict__[name] = None
        del module
    _collect()


def _collect():
    """Collect what nobody refers to; files before, since one in a circle may be closed before it is written."""
    for kinds in (io.TextIOWrapper, (io.BufferedWriter, io.BufferedRandom)):
        for file in [o for o in gc.get_objects() if isinstance(o, kinds)]:
            try:
                file.flush()
            except Exception:
                pass  # it is closed, or its reader has gone
    gc.collect()


def _flush():
    """Write what is held back; the exit code where that fails."""
    code = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:
            if stream is sys.stdout:
                kind, value = sys.exc_info()[:2]
                print("Exception ignored in: %r\n%s: %s" % (stream, kind.__name__, value), file=sys.stderr)
            code = 120
    return code


def _python(argv, path=None):
    """Do what a new interpreter would do for these words."""
    words, unbuffered = list(argv[1:]), False
    while words and words[0] == "-u":
        words, unbuffered = words[1:], True
    ours = path is not None and _is_this(path)
    kind = words[0] if words else ""
    text = _source(kind, words) if ours and words else None
    first = "" if kind in ("-c", "-m") else os.path.dirname(os.path.realpath(kind))
    if text is None or _finds_others(first):
        _execute_instead(path or argv[0], argv)
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    main.__annotations__ = {}
    sys.modules["__main__"] = main
    if unbuffered and hasattr(sys.stdout, "reconfigure"):
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=False, write_through=True)
    sys.argv = [kind] + words[2:] if kind in ("-c", "-m") else words
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.getcwd() if kind == "-m" else first)
    space = main.__dict__
    del main
    if kind == "-m":
        import runpy

        runpy._run_module_as_main(words[1], alter_argv=True)
        return None
    if kind == "-c":
        space["__loader__"] = importlib.machinery.BuiltinImporter
        exec(compile(text, "<string>", "exec", dont_inherit=True), space)
        return None
    name = os.path.abspath(kind) if sys.version_info >= (3, 9) else kind
    space.update(__file__=name, __cached__=None, __loader__=importlib.machinery.SourceFileLoader("__main__", name))
    exec(compile(text, name, "exec", dont_inherit=True), space)
    return None


def _source(kind, words):
    """The text that words of Python run; None where only a new interpreter knows what to make of them."""
    if kind in ("-c", "-m"):
        return words[1] if len(words) > 1 else None
    if kind.startswith("-"):
        return None
    try:
        with open(kind, "rb") as f:
            text = f.read()
    except OSError:
        return None
    return None if b"\0" in text else text


def _finds_others(folder):
    """Whether a job imports something else than the worker has imported by that name.

    So with a relative entry of PYTHONPATH, and with a module beside the script.
    """
    entries = os.environ.get("PYTHONPATH")
    if entries and not all(map(os.path.isabs, entries.split(os.pathsep))):
        return True
    if getattr(sys.flags, "safe_path", False):
        return False
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return False
    for name in names:
        module = name.partition(".")[0]
        if module in _BARE or module not in sys.modules:
            continue
        path = os.path.join(folder, name)
        if name == module:
            path = os.path.join(path, "__init__.py")
            if not os.path.exists(path):
                continue
        elif not name.endswith((".py", ".pyc", ".so")):
            continue
        if not _same(path, getattr(sys.modules[module], "__file__", None)):
            return True
    return False


def _same(one, other):
    """Whether two files hold the same."""
    try:
        with open(one, "rb") as f, open(other, "rb") as g:
            return f.read() == g.read()
    except (OSError, TypeError):
        return False


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
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    if sys.argv[1:2] and sys.argv[1].startswith(_MEMORY):
        _interpreters.append(_execute(sys.argv[1])["prepare"](sys.argv[2:]))
        del sys.argv[1:]
    if sys.argv[0].startswith(_MEMORY):
        os.close(int(os.path.basename(sys.argv[0])))
    serve(_interpreters[-1], modules=sys.argv[1:])
