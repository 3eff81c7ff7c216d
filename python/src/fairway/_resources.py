"""What jobs need, in the words of a workflow file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

_SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
          "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_TIMES = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def processors() -> int:
    """How many processors this process may use: taskset and the limits of its control group count."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        count = os.cpu_count() or 1
    try:
        with open("/proc/self/cgroup", encoding="ascii") as f:
            group = next(line.split(":", 2)[2].strip() for line in f if line.startswith("0::"))
    except (OSError, StopIteration):
        return count
    while True:
        try:
            with open(f"/sys/fs/cgroup{group.rstrip('/')}/cpu.max", encoding="ascii") as f:
                quota, period = f.read().split()
            if quota != "max":
                count = min(count, max(1, int(quota) // int(period)))
        except OSError:
            pass  # the root has none
        if group in ("/", ""):
            return count
        group = os.path.dirname(group)


def size(value: int | float | str) -> int:
    """Bytes: a number, or a text such as 4GB or 512MiB."""
    if isinstance(value, (int, float)):
        return int(value)
    match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?I?)B?\s*", value.upper())
    if not match:
        raise ValueError(f"{value!r} is no size: write 500MB or 4GiB")
    return int(float(match.group(1)) * _SIZES[match.group(2)])


def seconds(value: int | float | str) -> float:
    """Seconds: a number, or a text such as 90s, 10m or 1h30m."""
    if isinstance(value, (int, float)):
        return float(value)
    parts = re.findall(r"([0-9.]+)(ms|s|m|h|d)", value)
    if not parts or "".join(n + unit for n, unit in parts) != value.strip():
        raise ValueError(f"{value!r} is no time: write 90s, 10m or 1h30m")
    return sum(float(n) * _TIMES[unit] for n, unit in parts)


def resources(needs: Mapping[str, Any]) -> dict[str, Any]:
    """The message Resources of the API."""
    made: dict[str, Any] = {}
    for name, value in needs.items():
        if name == "cpus":
            made["milliCpus"] = round(float(value) * 1000)
        elif name == "memory":
            made["memoryBytes"] = size(value)
        elif name == "disk":
            made["diskBytes"] = size(value)
        elif name == "time":
            made["time"] = f"{seconds(value):g}s"
        elif name == "gpu" and 0 < float(value) < 1:
            made["gpuShare"] = int(float(value) * 1000 + 1e-6)
        else:
            made.setdefault("countable", {})[name] = _number(name, value)
    return made


def _number(name: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"needs: {name}: {value!r} is no whole number; sizes and times are those of memory, disk and time"
        ) from None
