"""Functions that tests call as jobs. They stand in a module, so that no cloudpickle is needed."""

import os
import time

import fairway


def square(x):
    return x * x


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


def make(text):
    with open("made.txt", "w") as f:
        f.write(text)
    return {"made": fairway.File("made.txt"), "length": len(text)}


def read(file):
    return file.read_text()


def append(path, line):
    with open(path, "a") as f:
        f.write(line + "\n")
    return line


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)
    return True
