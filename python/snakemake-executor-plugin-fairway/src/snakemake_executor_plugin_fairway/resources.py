"""What the resources of a rule are in Fairway (the table of docs/snakemake.md)."""

import math
from collections.abc import Mapping
from typing import Any

_GUESSED_DISK = 50_000  # MB that Snakemake assumes where a rule says nothing and has no inputs
OWN_MEMORY = 200  # MB for Snakemake itself, which runs in the job


def needs(resources: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """The message Resources of docs/api.md: what each task of a job needs."""
    cores = max(1, _number(resources, "_cores") or threads)
    made: dict[str, Any] = {"milliCpus": 1000 * cores}
    count, nodes = _tasks(resources)
    memory = _number(resources, "mem_mb")
    if _number(resources, "mem_mb_per_cpu"):
        memory = _number(resources, "mem_mb_per_cpu") * cores
    elif memory and count > 1:  # it is that of a node
        memory = math.ceil(memory * max(1, nodes) / count)
    if memory:
        made["memoryBytes"] = (memory + OWN_MEMORY) * 10**6
    if _number(resources, "disk_mb"):
        made["diskBytes"] = _number(resources, "disk_mb") * 10**6
    if _number(resources, "runtime"):
        made["time"] = f"{_number(resources, 'runtime') * 60}s"
    gpus = _number(resources, "gpu") or _number(resources, "gpus")
    if gpus:
        made["countable"] = {"gpu": gpus}
    return made


def requested(job: Any) -> Mapping[str, Any]:
    """The resources of a job, but its disk space where that is a guess about a job without inputs."""
    members = job.jobs if job.is_group() else [job]
    if any(_number(j.resources, "disk_mb") == _GUESSED_DISK and not j.input for j in members):
        return {name: value for name, value in job.resources.items() if name != "disk_mb"}
    resources: Mapping[str, Any] = job.resources
    return resources


def tasks(resources: Mapping[str, Any]) -> dict[str, Any]:
    """What a job of several tasks has more: the first runs Snakemake, and what its rule calls starts the others."""
    count, nodes = _tasks(resources)
    if count <= 1:
        return {}
    return {"tasks": count, "once": True, "apart": nodes >= count}


def _tasks(resources: Mapping[str, Any]) -> tuple[int, int]:
    nodes = _number(resources, "nodes")
    return max(_number(resources, "tasks"), nodes, 1), nodes


def _number(resources: Mapping[str, Any], name: str) -> int:
    value = resources.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
