"""joblib's Parallel by Fairway.

import fairway.joblib, joblib
fairway.joblib.register()
with joblib.parallel_config(backend="fairway", n_jobs=8):
    joblib.Parallel()(joblib.delayed(f)(x) for x in range(100))
"""

from __future__ import annotations

import os
import pickle
import threading
from typing import Any

from joblib.parallel import FallbackToBackend, ParallelBackendBase, SequentialBackend, register_parallel_backend

from ._batching import following
from ._executor import Executor
from ._future import Future
from ._resources import processors

__all__ = ["FairwayBackend", "register"]


class FairwayBackend(ParallelBackendBase):  # type: ignore[misc]
    """Calls of joblib as jobs of Fairway.

    Args:
        executor: makes the calls. Default: one that all Parallel of a program with the same options share, and that
            ends with it.
        nesting_level: that of joblib.
        **options: of that executor.
    """

    supports_retrieve_callback = True
    supports_return_generator = True  # pyright: ignore
    supports_timeout = True  # pyright: ignore
    supports_inner_max_num_threads = True
    default_n_jobs = -1
    # Named as in joblib's own backends, and what they promise: a Parallel that has ended is forgotten.
    _DEFAULT_EFFECTIVE_BATCH_SIZE = 1
    _DEFAULT_SMOOTHED_BATCH_DURATION = _smoothed_batch_duration = 0.0

    def __init__(self, executor: Executor | None = None, nesting_level: int | None = None, **options: Any) -> None:
        super().__init__(nesting_level=nesting_level)
        self._given = executor
        self._options = options
        self._executor = executor
        self._futures: set[Future[Any]] = set()
        self._changed: dict[str, Any] = {}  # options of the calls of a Parallel
        self._last = threading.local()  # how long the batch took whose result was retrieved last
        self._effective_batch_size = self._DEFAULT_EFFECTIVE_BATCH_SIZE  # calls of the next one

    def effective_n_jobs(self, n_jobs: int | None) -> int:  # pyright: ignore
        """How many calls run at a time."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        if n_jobs > 0:
            return n_jobs
        return self._given.max_workers if self._given is not None else max(1, processors() + 1 + n_jobs)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **options: Any) -> int:  # pyright: ignore
        """Begin to serve a Parallel. One of a single job is the program itself, as joblib promises.

        Args:
            n_jobs: calls at a time; -1: one for each processor.
            parallel: who is served.
            **options: what it was made with, of which initializer and initargs count.
        """
        if n_jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        n_jobs = self.effective_n_jobs(n_jobs)
        self._changed = {name: options[name] for name in ("initializer", "initargs") if name in options}
        self._changed["variables"] = self._prepare_worker_env(n_jobs)  # libraries have no more threads than processors
        if self._given is None:
            self._executor = _shared(n_jobs, self._options)
        return n_jobs

    def submit(self, func: Any, callback: Any = None) -> Future[Any]:
        """Call a batch of functions.

        Args:
            func: the batch.
            callback: is called when it has ended.
        """
        assert self._executor is not None
        executor = self._executor.options(**self._changed)
        future = executor.submit(func)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def apply_async(self, func: Any, callback: Any = None) -> Future[Any]:
        """The name of submit in older versions of joblib.

        Args:
            func: the batch.
            callback: is called when it has ended.
        """
        return self.submit(func, callback)

    def retrieve_result_callback(self, out: Any) -> Any:
        """The results of a batch that has ended."""
        self._last.seconds = out.seconds
        if not out.job:
            raise pickle.PicklingError("Could not pickle the task to send to the workers.") from out.exception()
        return out.result()

    def compute_batch_size(self) -> int:  # pyright: ignore
        """How many calls the next batch has."""
        return self._effective_batch_size

    def batch_completed(self, batch_size: int, duration: float) -> None:
        """Learn how long a batch took, so that batches grow.

        Args:
            batch_size: its calls.
            duration: seconds from its submission to its end, of which those count that its functions took.
        """
        seconds = getattr(self._last, "seconds", None)
        self._effective_batch_size = following(batch_size, duration if seconds is None else seconds)

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel the calls of this Parallel. The executor serves the next one."""
        for future in list(self._futures):
            future.cancel()

    def terminate(self) -> None:
        """End to serve a Parallel."""
        self._executor = self._given
        self._effective_batch_size = self._DEFAULT_EFFECTIVE_BATCH_SIZE


_lock = threading.Lock()  # guards _executors
_executors: dict[str, tuple[int, Executor]] = {}  # by options: of which process


def _shared(n_jobs: int, options: dict[str, Any]) -> Executor:
    """The executor of this program for options."""
    with _lock:
        process, executor = _executors.get(key := repr((n_jobs, sorted(options.items()))), (0, None))
        if executor is None or process != os.getpid() or executor.closed:
            executor = Executor(n_jobs, **options)
            _executors[key] = os.getpid(), executor
        return executor


def register() -> None:
    """Have joblib know the backend "fairway"."""
    register_parallel_backend("fairway", FairwayBackend)
