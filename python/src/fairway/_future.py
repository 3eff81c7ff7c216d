"""Future: the result of a call."""

from __future__ import annotations

import concurrent.futures
import os
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class _Queue(Protocol):
    """What a future asks about itself."""

    def cancel(self, future: Future[T]) -> bool: ...

    def runs(self, future: Future[T]) -> bool: ...


class Future(concurrent.futures.Future[T]):
    """The result of a call, as that of concurrent.futures. Executors make it.

    Args:
        queue: what it asks about itself.
        name: of its call.

    Attributes:
        job: the name of its job, for `fairway show`; short calls may share one.
        seconds: how long the function took, once that is known.
    """

    def __init__(self, queue: _Queue, name: str) -> None:
        super().__init__()
        self.job = name
        self.seconds: float | None = None
        self._queue = queue
        self._name = name  # of its call
        self._process = os.getpid()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"a future is that of its process, {self._process}: send what its result() returns")

    def cancel(self) -> bool:
        """End the call, also one that runs. It returns False only where it has ended before."""
        if self.done():
            return self.cancelled()
        if self._queue.cancel(self):
            self.set_cancelled()
        return self.cancelled()

    def running(self) -> bool:
        """Whether the call runs now. This asks the server, at most ten times a second."""
        return not self.done() and self._queue.runs(self)

    def result(self, timeout: float | None = None) -> T:
        """What the function returned. The error is what it raised, or a JobFailed."""
        self._check()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the function raised."""
        self._check()
        return super().exception(timeout)

    def set_cancelled(self) -> None:
        """Be cancelled, for all who wait for it. For executors only."""
        if super().cancel():
            self.set_running_or_notify_cancel()

    def _check(self) -> None:
        if self._process != os.getpid() and not self.done():
            raise RuntimeError(f"this call was submitted by process {self._process}, which alone hears of its result: "
                               "after a fork, make an executor in the new process")
