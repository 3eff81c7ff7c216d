"""What tells one call from another, in whatever program it is made: for results that are remembered."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import io
import os
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

import fairway_call

from ._calls import Call, is_library
from ._file import File


def identity(calls: Sequence[Call], more: Iterable[str]) -> str:
    """A hash of the functions, with the sources of the modules that they use, and of the arguments.

    Contents of files count, and neither the order of sets nor the line in which a function stands.
    Modules that are installed count by their names.
    """
    found = _Canonical()
    digest = hashlib.sha256(found.digest(list(calls)).encode())
    for word in (*sorted(_sources(found.modules)), *more):
        digest.update(b"\0" + word.encode())
    return digest.hexdigest()[:32]


class _Canonical:
    """Pickles values so that what is equal is equal in bytes, and notes the modules that they name."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self._within: list[type] = []  # classes whose parts are being pickled

    def digest(self, value: Any) -> str:
        out = io.BytesIO()
        fairway_call.Pickler(out, self._name).dump(value)
        return hashlib.sha256(out.getvalue()).hexdigest()

    def _name(self, o: Any) -> Any:
        """What stands for an object in place of its pickle; None: nothing does."""
        kind = type(o)
        if isinstance(o, File):
            return "file", o.identity()
        if kind is set or kind is frozenset:
            return kind.__name__, sorted(self.digest(member) for member in o)
        if kind is types.CodeType:
            return self._code(o)
        if kind is types.ModuleType:
            self.modules.add(o.__name__)
        elif isinstance(o, type) and (o.__module__ == "__main__" or "<locals>" in o.__qualname__):
            return self._class(o)
        elif isinstance(o, (type, types.FunctionType)):
            self.modules.add(str(o.__module__))
        return None

    def _code(self, code: types.CodeType) -> Any:
        self.modules.update(_imports_of_code(code))
        plain = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount",
                 "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_exceptiontable")
        return "code", [getattr(code, name, None) for name in plain], [self.digest(c) for c in code.co_consts]

    def _class(self, o: type) -> Any:
        if o in self._within:
            return "class", self._within.index(o)
        self._within.append(o)
        try:
            parts = {k: v for k, v in vars(o).items() if k not in ("__dict__", "__weakref__", "__firstlineno__")}
            parts = {k: (type(v).__name__, list(_parts(v))) for k, v in sorted(parts.items())}
            return "class", o.__qualname__, [self.digest(base) for base in o.__bases__], self.digest(parts)
        finally:
            self._within.pop()


def _parts(value: Any) -> Iterable[Any]:
    """Of a member of a class what can be pickled."""
    if isinstance(value, (staticmethod, classmethod)):
        yield value.__func__
    elif isinstance(value, property):
        yield from (value.fget, value.fset, value.fdel)
    elif not isinstance(value, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        yield value


def _imports_of_code(code: types.CodeType) -> set[str]:
    """Names in code that are those of modules of the program, which it may import when it runs."""
    return {name for name in code.co_names if _source(name) is not None}


@functools.cache
def _source(module: str) -> str | None:
    """The file of a module of the program; None: it is installed, or there is none."""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if loaded is None:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, AttributeError, ValueError):
            return None
        file = spec.origin if spec is not None and spec.has_location else None
    if file is None or is_library(file) or module.partition(".")[0] in ("fairway", "fairway_call", "__main__"):
        return None
    return str(file)


def _sources(modules: Iterable[str]) -> set[str]:
    """Hashes of the files of modules of the program, and of those that they import."""
    left, seen, found = list(modules), set(), set()
    while left:
        module = left.pop()
        file = _source(module)
        if module in seen or file is None:
            continue
        seen.add(module)
        with open(file, "rb") as f:
            text = f.read()
        found.add(f"{module} {hashlib.sha256(text).hexdigest()}")
        if file.endswith(".py"):
            left += _imports(text, module, os.path.basename(file) == "__init__.py")
        left += [module.rpartition(".")[0]] if "." in module else []
    return found


def _imports(text: bytes, module: str, package: bool) -> Iterable[str]:
    """The modules that a text may import, wherever it does."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")
            parents = parents[: len(parents) - node.level + package] if node.level else []
            name = ".".join([*parents, *([node.module] if node.module else [])])
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)
