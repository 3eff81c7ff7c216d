"""joblib's Parallel by Fairway.

    import fairway.joblib, joblib
    fairway.joblib.register()
    with joblib.parallel_config(backend="fairway", n_jobs=8):
        joblib.Parallel()(joblib.delayed(f)(x) for x in range(100))
"""

from __future__ import annotations

from typing import Any, Optional

from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, register_parallel_backend

from ._executor import Executor

__all__ = ["FairwayBackend", "register"]


class FairwayBackend(AutoBatchingMixin, ParallelBackendBase):
    """Calls of joblib as jobs of Fairway. executor, or what else Executor takes, says where."""

    supports_retrieve_callback = True
    supports_return_generator = True
    default_n_jobs = -1

    def __init__(self, executor: Optional[Executor] = None, nesting_level: Optional[int] = None, **options: Any) -> None:
        super().__init__(nesting_level=nesting_level)
        self._given = executor
        self._options = options
        self._executor: Optional[Executor] = executor

    def effective_n_jobs(self, n_jobs: Optional[int]) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        if self._given is not None and n_jobs < 0:
            return self._given._max_workers
        if n_jobs < 0:
            import os

            return max(1, (os.cpu_count() or 1) + 1 + n_jobs)
        return n_jobs

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        self.parallel = parallel
        n_jobs = self.effective_n_jobs(n_jobs)
        if self._executor is None:
            self._executor = Executor(n_jobs, **self._options)
        return n_jobs

    def submit(self, func: Any, callback: Any = None) -> Any:
        assert self._executor is not None
        future = self._executor.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        if self._executor is not None and self._given is None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)

    def terminate(self) -> None:
        if self._executor is not None and self._given is None:
            self._executor.shutdown()
            self._executor = None


def register() -> None:
    """Have joblib know the backend "fairway"."""
    register_parallel_backend("fairway", FairwayBackend)
