"""What worker.py forks where jobs are `Rscript`: a process that has loaded R and packages before.

worker.py executes it, and calls prepare(packages), which returns what is called in each job. R is
loaded as the library that other programs embed (libR.so). Python 3.6 and later; tried with R 4.2.
"""

import ctypes
import io
import os
import re
import shutil
import signal
import subprocess
import sys

# What the program R tells its library by variables: where its files are.
_FOLDERS = ("R_HOME", "R_SHARE_DIR", "R_INCLUDE_DIR", "R_DOC_DIR", "R_ARCH", "LD_LIBRARY_PATH")

_LOAD = """tryCatch({
    for (name in c(%s)) suppressMessages(loadNamespace(name))
    if (exists(".Random.seed", globalenv(), inherits = FALSE)) rm(".Random.seed", envir = globalenv())
    invisible(gc())
}, error = function(e) { message(conditionMessage(e)); quit("no", 1) })"""


def prepare(packages):
    """Load R and packages, and return main(argv, path), which becomes what `Rscript` would be."""
    for name in packages:
        if not re.match(r"^[A-Za-z][A-Za-z0-9.]*$", name):
            raise SystemExit("%r is no name of an R package" % name)
    program = shutil.which("R")
    if program is None:
        raise SystemExit("there is no R in PATH")
    said = subprocess.check_output([program, "CMD", "printenv"] + list(_FOLDERS))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # as R has it; the interpreter ignores it
    folders = dict(zip(_FOLDERS, map(os.fsdecode, said.split(b"\n"))))
    home = folders["R_HOME"]
    ours = {os.path.realpath(os.path.join(folder, "Rscript"))
            for folder in (os.path.dirname(program), os.path.join(home, "bin"))}
    os.chdir("/")  # a .Rprofile is that of a job
    r = _load(folders)
    r.R_ParseEvalString((_LOAD % ", ".join('"%s"' % name for name in packages)).encode(),
                        ctypes.c_void_p.in_dll(r, "R_GlobalEnv"))
    # Each job makes a folder for temporary files of its own, where its variables say.
    folder = ctypes.c_char_p.in_dll(r, "R_TempDir")
    shutil.rmtree(os.fsdecode(folder.value))
    folder.value = None

    def main(argv, path):
        source = _source(argv[1:])
        if source is None or os.path.realpath(path) not in ours or _has_profile():
            sys.modules["fairway_worker"]._execute_instead(path, argv)
        options, lines = source
        _tell(dict(folders, PWD=os.getcwd()))
        r.R_reInitTempDir(1)
        words = [os.path.join(home, "bin", "exec", "R"), "--no-echo", "--no-restore"] + options
        r.R_set_command_line_arguments(*_words(words))
        console = _console(lines)
        ctypes.c_void_p.in_dll(r, "ptr_R_ReadConsole").value = ctypes.cast(console, ctypes.c_void_p).value
        r.run_Rmainloop()  # it ends the process

    return main


def _load(folders):
    """The library, after what `R --no-echo --no-restore --no-save` does before its first line."""
    folder = os.path.join(folders["R_HOME"], "lib")
    for name in ("libRblas.so", "libRlapack.so"):  # of an R that brings them
        if os.path.exists(os.path.join(folder, name)):
            ctypes.CDLL(os.path.join(folder, name), ctypes.RTLD_GLOBAL)
    _tell(folders)
    r = ctypes.CDLL(os.path.join(folder, "libR.so"), ctypes.RTLD_GLOBAL)
    r.R_ParseEvalString.argtypes, r.R_ParseEvalString.restype = (ctypes.c_char_p, ctypes.c_void_p), ctypes.c_void_p
    r.Rf_initialize_R(*_words(["R", "--no-echo", "--no-restore", "--no-save"]))
    ctypes.c_int.in_dll(r, "R_Interactive").value = 0
    r.setup_Rmainloop()
    return r


def _tell(variables):
    """Set variables for the library; os.environ, which jobs replace, does not see it."""
    libc = ctypes.CDLL(None)
    for name, value in variables.items():
        os.environ.pop(name, None)
        libc.setenv(name.encode(), os.fsencode(value), 1)


def _words(words):
    """The number of words, and the words, as C wants them."""
    return len(words), (ctypes.c_char_p * (len(words) + 1))(*[os.fsencode(word) for word in words])


def _source(words):
    """What `Rscript` gives R as options for these words, and the lines that R then reads; None for others."""
    if words and not words[0].startswith("-"):
        try:
            lines = open(words[0], "rb")
        except OSError:
            return None
        arguments = ["--args"] + words[1:] if words[1:] else []
        return ["--file=" + words[0]] + arguments, lines
    options, text = [], []
    while len(words) >= 2 and words[0] == "-e":
        options += ["-e", words[1].replace(" ", "~+~")]  # as Rscript has it
        text.append(words[1])
        words = words[2:]
    if not text or words and words[0].startswith("-"):
        return None
    return options + (["--args"] + words if words else []), io.BytesIO(os.fsencode("\n".join(text) + "\n"))


def _has_profile():
    """Whether R would begin with what the job has: the worker has not."""
    return os.path.exists(".Rprofile") or os.path.exists(".Renviron")


def _console(lines):
    """What R calls for each line: the number of bytes is limited, and 0 is the end."""
    def read(prompt, buffer, size, history):
        line = lines.readline(size - 1)
        if not line:
            return 0
        if line.endswith(b"\r\n"):
            line = line[:-2] + b"\n"
        if not line.endswith(b"\n") and len(line) < size - 1:
            line += b"\n"
        ctypes.memmove(buffer, line + b"\0", len(line) + 1)
        return 1

    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(read)
