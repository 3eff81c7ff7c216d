"""Functions that tests call as jobs. They stand in a module, so that no cloudpickle is needed."""

import os
import subprocess
import threading
import time

import fairway


def square(x):
    return x * x


def increment(x):
    return x + 1


def fail(x):
    print("before it failed")
    raise KeyError("no such thing", x)


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__(a)


def fail_oddly():
    raise Unpicklable(1, 2)


def die():
    os.kill(os.getpid(), 9)


def alone(lock):
    """Whether no other call had the lock in a time in which one would have begun."""
    try:
        os.mkdir(lock)
    except FileExistsError:
        return False
    time.sleep(0.2)
    os.rmdir(lock)
    return True


def make(text):
    with open("made.txt", "w") as f:
        f.write(text)
    return {"made": fairway.File("made.txt"), "length": len(text)}


def read(file):
    return file.read_text()


def write_own(x):
    with open("own", "x") as f:
        f.write(str(x))
    return x


def odd_one(x):
    if x % 10 == 3:
        print("before it failed")
        raise KeyError("no such thing", x)
    if x % 10 == 4:
        with open("made.txt", "w") as f:
            f.write(str(x))
        return fairway.File("made.txt")
    os.chdir("/")
    return x


def die_at(x, last):
    if x == last:
        die()
    return x


def square_behind(x, gate):
    if gate:
        wait_for(gate)
    return x * x


def append(path, line):
    with open(path, "a") as f:
        f.write(line + "\n")
    return line


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)
    return True


def run_until(begun, path):
    open(begun, "w").close()
    return wait_for(path)


def leave_process(begun):
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    run_until(begun, "never")


def nap(seconds):
    time.sleep(seconds)


def fork(x):
    if os.fork() == 0:
        return "of the fork"
    os.wait()
    return x


def leave(code):
    os._exit(code)


def exit_by(code):
    raise SystemExit(code)


def keep_thread(x):
    threading.Thread(target=time.sleep, args=(1000,)).start()
    return x


def give(path):
    return fairway.File(path)


def print_and_fail(lines):
    for _ in range(lines):
        print("x" * 99)
    raise KeyError("the reason")


def give_back(file):
    return file


state = []


def begin(word):
    if word is None:
        raise KeyError("no word")
    state.append(word)


def begun():
    return state, os.getpid()


def put(shared, key):
    shared[key] = os.getpid()
    return shared


def append_and_fail(path):
    append(path, "tried")
    raise KeyError("again")
