"""Dask's graphs by Fairway: each task is a job.

import dask, fairway
from fairway.dask import scheduler
with fairway.Executor() as executor:
dask.compute(x, scheduler=scheduler(executor))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dask.local import get_async

from ._executor import Executor

__all__ = ["get", "scheduler"]


def get(dsk: Any, keys: Any, *, executor: Executor, **options: Any) -> Any:
    """The values of keys of a graph. Values between tasks go through this process."""
    options.pop("num_workers", None)
    return get_async(executor.submit, executor.max_workers, dsk, keys, **options)  # type: ignore[no-untyped-call]


def scheduler(executor: Executor) -> Callable[..., Any]:
    """A get for dask.compute(scheduler=...) and dask.config.set."""
    return partial(get, executor=executor)
