"""The executor as CPython's tests make and inspect that of concurrent.futures."""

import os
import types

import fairway


class FairwayExecutor(fairway.Executor):
    """Takes, and drops, what says how processes are made."""

    def __init__(self, max_workers=None, mp_context=None, *, max_tasks_per_child=None, **kwargs):
        # The tests ask for five processes, and mostly use two.
        if isinstance(max_workers, int):
            max_workers = min(max_workers, max(2, os.cpu_count()))
        super().__init__(max_workers, **kwargs)
        self._processes = {}
        self._call_queue = types.SimpleNamespace(join_thread=lambda: None)

    @property
    def _executor_manager_thread(self):
        return self._queue.run._listener
