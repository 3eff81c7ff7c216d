"""A plugin of pytest: Snakemake's tests run their workflows by Fairway, instead of on the spot or by scripts
that stand for a batch system. They themselves compare exit code and files with those that they expect.
"""

import functools

from snakemake.api import DAGApi
from snakemake_executor_plugin_fairway import ExecutorSettings

_CORES = 2
_execute = DAGApi.execute_workflow


@functools.wraps(_execute)
def _by_fairway(self, executor="local", *args, executor_settings=None, **kwargs):
    if executor in ("local", "cluster-generic"):
        executor, executor_settings = "fairway", ExecutorSettings(options="--has gpu=8")
        settings = self.workflow_api.resource_settings
        settings.nodes, settings.cores = _CORES, _CORES
    return _execute(self, executor, *args, executor_settings=executor_settings, **kwargs)


DAGApi.execute_workflow = _by_fairway
