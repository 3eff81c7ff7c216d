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

import dask
from dask.core import flatten
from dask.local import get_async
from dask.optimization import cull, fuse
from dask.utils import ensure_dict

from ._executor import Executor

_specs: Any = getattr(dask, "_task_spec", None)  # older versions have tuples as tasks

__all__ = ["get", "scheduler"]


def get(dsk: Any, keys: Any, *, executor: Executor, optimize_graph: bool = True, **options: Any) -> Any:
    """The values of keys of a graph. Values between tasks go through this process.

    Args:
        dsk: the graph; tasks that no key needs are left out.
        keys: what is wanted, as lists of lists.
        executor: makes the calls.
        optimize_graph: tasks that follow each other, and nobody else needs, are one call.
        **options: of dask.local.get_async.
    """
    options.pop("num_workers", None)
    if hasattr(dsk, "__dask_graph__"):
        dsk = dsk.__dask_graph__()
    graph, dependencies = cull(ensure_dict(dsk), keys)  # type: ignore[no-untyped-call]
    if optimize_graph and hasattr(_specs, "fuse_linear_task_spec"):
        wanted = set(flatten(keys)) if isinstance(keys, list) else {keys}  # type: ignore[no-untyped-call]
        graph = _specs.fuse_linear_task_spec(_specs.convert_legacy_graph(graph), wanted)
    elif optimize_graph:
        graph, _ = fuse(graph, keys, dependencies)  # type: ignore[no-untyped-call]
    return get_async(executor.submit, executor.max_workers, graph, keys, **options)  # type: ignore[no-untyped-call]


def scheduler(executor: Executor) -> Callable[..., Any]:
    """A get for dask.compute(scheduler=...) and dask.config.set."""
    return partial(get, executor=executor)
