"""What rules ask for, in the words of Fairway."""

import pytest

from snakemake_executor_plugin_fairway.resources import needs, requested, tasks


@pytest.mark.parametrize("resources, threads, needed", [
    ({}, 1, {"milliCpus": 1000}),
    ({"_cores": 3}, 1, {"milliCpus": 3000}),
    ({"mem_mb": 300}, 2, {"milliCpus": 2000, "memoryBytes": 500_000_000}),
    ({"mem_mb_per_cpu": 300}, 2, {"milliCpus": 2000, "memoryBytes": 800_000_000}),
    ({"mem_mb_per_cpu": 300, "mem_mb": 1000}, 2, {"milliCpus": 2000, "memoryBytes": 800_000_000}),
    ({"disk_mb": 2000}, 1, {"milliCpus": 1000, "diskBytes": 2_000_000_000}),
    ({"runtime": 5, "gpus": 2}, 1, {"milliCpus": 1000, "time": "300s", "countable": {"gpu": 2}}),
    ({"tasks": 4, "mem_mb": 1000}, 1, {"milliCpus": 1000, "memoryBytes": 450_000_000}),
    ({"tasks": 4, "nodes": 2, "mem_mb": 1000}, 1, {"milliCpus": 1000, "memoryBytes": 700_000_000}),
    ({"mem_mb": "a word", "gpu": 0, "runtime": True}, 1, {"milliCpus": 1000}),
])
def test_needs(resources, threads, needed):
    assert needs(resources, threads) == needed


@pytest.mark.parametrize("resources, expected", [
    ({}, {}),
    ({"tasks": 1, "nodes": 1}, {}),
    ({"tasks": 4}, {"tasks": 4, "once": True, "apart": False}),
    ({"tasks": 4, "nodes": 2}, {"tasks": 4, "once": True, "apart": False}),
    ({"nodes": 3}, {"tasks": 3, "once": True, "apart": True}),
])
def test_tasks(resources, expected):
    assert tasks(resources) == expected


class _Job:
    def __init__(self, input, **resources):
        self.input, self.resources, self.jobs = input, resources, None

    def is_group(self):
        return self.jobs is not None


def test_needs_have_no_disk_that_is_guessed():
    assert "diskBytes" not in needs(requested(_Job([], disk_mb=50_000)), 1)
    assert needs(requested(_Job(["a"], disk_mb=50_000)), 1)["diskBytes"] == 50_000 * 10**6
    assert needs(requested(_Job([], disk_mb=40_000)), 1)["diskBytes"] == 40_000 * 10**6
    group = _Job([], disk_mb=51_000, mem_mb=100)
    group.jobs = [_Job([], disk_mb=50_000), _Job(["a"], disk_mb=1000)]
    assert "diskBytes" not in needs(requested(group), 1)
