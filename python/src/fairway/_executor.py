"""Executor: calls of Python functions as jobs."""

from __future__ import annotations

import atexit
import collections
import concurrent.futures
import copy
import dataclasses
import html
import itertools
import os
import platform
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

from ._calls import Call, step
from ._connection import Client, Path
from ._display import display
from ._future import Future
from ._open_run import OpenRun
from ._program import check_version
from ._queue import CALL, Options, Queue
from ._resources import processors, resources

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Executor(concurrent.futures.Executor):
    """A concurrent.futures.Executor whose calls are jobs of Fairway.

    Where nothing runs in its folder it starts a server, which ends with the executor or, however it
    ends, with the last program that has one in that folder. Threads share an executor; after a fork the
    new process makes one of its own.

    Args:
        max_workers: calls that run at a time on this machine. Default: one for each processor that the
            process may use.
        folder: of the run; calls that were made there before are kept. Default: one that goes with the
            executor. If a run is open there, calls are added to it.
        server: the folder of a server that lasts, or a copy of its service file: then the run is one of
            that server.
        run: the number of an open run of that server. Default: a new one.
        site: sites to run on.
        needs: of each call: cpus, memory, disk, time, or what a site names, such as {"memory": "4GB"}.
        variables: of the environment of calls.
        retries: how often a call is made again that failed. (One that is lost with its node is.)
        priority: calls with a higher one begin before others of the run.
        timeout: seconds after which a call is ended.
        together: short calls of a function may share jobs, and so processes.
        remember: a call with the same function, modules of the program, arguments and contents of files
            as an earlier one in the same folder has its result.
        python: the interpreter of calls, of the same version as this one.
        modules: what their workers import once; those that calls are seen to need are added.
        initializer: is called in each process of calls before the first. A call fails with the error that it raises.
        initargs: its arguments.
        options: further words for `fairway open`.

    Raises:
        FairwayError: no server could be started, or it refuses.
        ValueError: python is of another version than this one, which could not read what is sent.
    """

    def __init__(
        self, max_workers: int | None = None, *, folder: Path | None = None, server: Path | None = None, run: int = 0,
        site: str | Iterable[str] | None = None, needs: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None, retries: int = 0, priority: int = 0, timeout: float | None = None,
        together: bool = True, remember: bool = False, python: str | None = None, modules: Iterable[str] = (),
        initializer: Callable[..., object] | None = None, initargs: Iterable[Any] = (), options: Iterable[str] = (),
    ) -> None:
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if python is not None and server is None and not site:
            check_version(python)
        options = list(options)
        alone = server is None and not site and not options
        here = server is None and not site and not any(word.startswith(("--site", "--pilots")) for word in options)
        workers = max_workers or processors()
        self._options = Options(_needed(needs or {}, timeout), variables or {}, retries, priority, together, remember,
                                _begin(initializer, initargs))
        self._queue = Queue(
            partial(OpenRun, folder, server=server, run=run, pilots=None if server else workers, site=site,
                    options=options, has=f"{CALL}={workers}" if here else ""),
            workers, python or (sys.executable if server is None else "python3"), modules,
            elsewhere=server is not None or bool(site), alone=alone, here=here)
        if self._queue.run.ignored and (max_workers or not alone):
            warnings.warn(self._queue.run.ignored, stacklevel=2)
        _open_queues.add(self._queue)
        self._known = _Known()  # to those who have this executor, also with other options
        weakref.finalize(self._known, _abandon, self._queue).atexit = False

    @property
    def client(self) -> Client:
        """Asks the server of the run."""
        return self._queue.run.client

    @property
    def max_workers(self) -> int:
        """How many calls run at a time on this machine."""
        return self._queue.workers

    def versions(self) -> dict[str, str]:
        """Those that its client says, and that of the Python which makes its calls, by one of them ("workers").

        Raises:
            BrokenExecutor: that Python is of another version than this one; the message says which.
        """
        return {**self.client.versions(), "workers": self.submit(platform.python_version).result()}

    @property
    def closed(self) -> bool:
        """Whether it takes no more calls."""
        return self._queue.closed

    def __repr__(self) -> str:
        state = "closed" if self._queue.closed else f"{self._queue.done} done, {len(self._queue.waiting())} to do"
        return f"Executor({self.client.location!r}: {state})"

    def _repr_html_(self) -> str:
        """What notebooks show: a bar, and a link to the page of the run if it has one."""
        done, place = self._queue.done, html.escape(self.client.location)
        total = done + len(self._queue.waiting())
        try:
            with open(os.path.join(self.client.location, ".fairway", "link"), encoding="utf-8") as f:
                place = f'<a href="{html.escape(f.read().strip())}">{place}</a>'
        except OSError:
            pass  # it has no pages
        return f'{place}: <progress value="{done}" max="{total or 1}"></progress> {done}/{total} calls'

    def options(
        self, *, needs: Mapping[str, Any] | None = None, variables: Mapping[str, str] | None = None,
        retries: int | None = None, priority: int | None = None, timeout: float | None = None,
        together: bool | None = None, remember: bool | None = None, initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
    ) -> Executor:
        """This executor with other options for calls: executor.options(retries=2).submit(f).

        Args:
            needs: what calls need, in addition to or in place of what they do.
            variables: the same.
            retries: as that of Executor, as are the others.
            priority: the same.
            timeout: the same.
            together: the same.
            remember: the same.
            initializer: the same.
            initargs: the same.
        """
        if variables is not None:
            variables = {**self._options.variables, **variables}
        given: dict[str, Any] = {"variables": variables, "retries": retries, "priority": priority, "together": together,
                                 "remember": remember, "begin": _begin(initializer, initargs)}
        changed = {k: v for k, v in given.items() if v is not None}
        view = copy.copy(self)
        needed = {**self._options.needs, **_needed(needs or {}, timeout)}
        view._options = dataclasses.replace(self._options, needs=needed, **changed)
        return view

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function as a job.

        Args:
            fn: the function. Of what cannot be pickled the future has the error.
            *args: its arguments. A File is brought to it.
            **kwargs: more of them.

        Returns:
            What it returns, or the exception that it raises.

        Raises:
            RuntimeError: the executor was shut down, or is that of another process.
        """
        return self._submit([(fn, args, kwargs)], lambda results: results[0])

    @overload  # type: ignore[override]  # that of concurrent.futures takes anything
    def map(
        self, fn: Callable[[A], T], iterable: Iterable[A], /, *, timeout: float | None = None, chunksize: int = 1,
        buffersize: int | None = None, progress: bool = False,
    ) -> Iterator[T]: ...

    @overload
    def map(
        self, fn: Callable[[A, B], T], iterable: Iterable[A], second: Iterable[B], /, *, timeout: float | None = None,
        chunksize: int = 1, buffersize: int | None = None, progress: bool = False,
    ) -> Iterator[T]: ...

    @overload
    def map(
        self, fn: Callable[[A, B, C], T], iterable: Iterable[A], second: Iterable[B], third: Iterable[C], /, *,
        timeout: float | None = None, chunksize: int = 1, buffersize: int | None = None, progress: bool = False,
    ) -> Iterator[T]: ...

    @overload
    def map(
        self, fn: Callable[..., T], iterable: Iterable[Any], second: Iterable[Any], third: Iterable[Any],
        fourth: Iterable[Any], /, *more: Iterable[Any], timeout: float | None = None, chunksize: int = 1,
        buffersize: int | None = None, progress: bool = False,
    ) -> Iterator[T]: ...

    def map(
        self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1,
        buffersize: int | None = None, progress: bool = False,
    ) -> Iterator[T]:
        """The results of a function for each of iterables, in order.

        Args:
            fn: the function.
            *iterables: its arguments.
            timeout: seconds from now on, after which TimeoutError is raised.
            chunksize: calls that are one job.
            buffersize: jobs that are submitted ahead of what is taken. Default: all at once.
            progress: show a line that changes.

        Returns:
            An iterator. What it has not given when it is closed is cancelled.

        Raises:
            ValueError: chunksize or buffersize is below 1.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be at least 1")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be at least 1")
        deadline = None if timeout is None else time.monotonic() + timeout
        arguments = zip(*iterables, strict=False)
        calls: Iterator[Call] = ((fn, args, {}) for args in arguments)
        chunks = iter(lambda: list(itertools.islice(calls, chunksize)), [])
        submitted = (self._submit(chunk, lambda results: results) for chunk in chunks)
        futures = collections.deque(itertools.islice(submitted, buffersize))
        show = display() if progress else None

        def results() -> Iterator[T]:
            given = 0
            try:
                while futures:
                    left = None if deadline is None else deadline - time.monotonic()
                    found = collections.deque(futures[0].result(left))
                    futures.popleft()
                    futures.extend(itertools.islice(submitted, 1))
                    given += len(found)
                    while found:
                        yield found.popleft()  # and know it no more
                    if show is not None:
                        show(f"{step(fn)}: {given} done, {len(futures) * chunksize} submitted")
            finally:
                for future in futures:
                    future.cancel()

        return results()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and end the run when those that there are have ended.

        Args:
            wait: for that. Ctrl-C ends the calls that still run.
            cancel_futures: cancel calls but those that run, or are the next to.
        """
        if self._queue.process != os.getpid():
            return  # it is that of the process that this one is a fork of
        self._queue.close()
        if cancel_futures:
            waiting = self._queue.waiting()
            running = [future for future in waiting if future.running()]
            begun = {*running, *waiting[: max(0, self.max_workers - len(running))]}  # they run, or will at once
            for future in waiting:
                if future not in begun:
                    future.cancel()
        if not wait:  # it goes on when the caller does
            threading.Thread(target=_end, args=(self._queue, False), name="fairway-shutdown").start()
            return
        try:
            _end(self._queue, False)
            self._queue.ended.wait()
        except KeyboardInterrupt:
            _end(self._queue, True)
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt) and self._queue.process == os.getpid():
            _end(self._queue, True)
        else:
            self.shutdown(wait=True)

    def _submit(self, calls: Sequence[Call], unpack: Callable[[list[Any]], T]) -> Future[T]:
        if self._queue.process != os.getpid():
            raise RuntimeError(f"this executor is that of process {self._queue.process}: after a fork, make one in the "
                               "new process")
        return self._queue.submit(calls, self._options, unpack)


def _needed(needs: Mapping[str, Any], timeout: float | None) -> dict[str, Any]:
    return resources({**needs, **({"time": timeout} if timeout is not None else {})})


def _begin(initializer: Callable[..., object] | None, arguments: Iterable[Any]) -> Callable[[], object] | None:
    if initializer is not None and not callable(initializer):
        raise TypeError("initializer must be a callable")
    return None if initializer is None else partial(initializer, *arguments)


class _Known:
    """Goes when nobody knows an executor any more."""


def _abandon(queue: Queue) -> None:
    """End a run to which nobody can submit any more when its calls have ended."""
    if queue.process == os.getpid() and not queue.closed:
        queue.close()
        threading.Thread(target=_end, args=(queue, False), name="fairway-shutdown").start()


def _end(queue: Queue, now: bool) -> None:
    queue.close()
    if now:
        for future in queue.waiting():
            future.cancel()
    queue.end(now)
    _open_queues.discard(queue)


_open_queues: set[Queue] = set()


def _end_all() -> None:
    """End what the program has left open, when it ends: as with those of concurrent.futures, calls end before."""
    interrupted = isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)
    for queue in list(_open_queues):
        if queue.process != os.getpid():
            continue
        try:
            if interrupted:
                raise KeyboardInterrupt
            _end(queue, False)
            queue.ended.wait()
        except KeyboardInterrupt:
            _end(queue, True)


# As those of concurrent.futures do, where that can be: what the program itself has registered runs afterwards.
getattr(threading, "_register_atexit", atexit.register)(_end_all)
