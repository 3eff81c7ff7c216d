"""The tests that Snakemake has for all executors."""

from snakemake.common.tests import TestWorkflowsLocalStorageBase
from snakemake_executor_plugin_fairway import ExecutorSettings


class TestWorkflows(TestWorkflowsLocalStorageBase):
    __test__ = True

    def get_executor(self):
        return "fairway"

    def get_executor_settings(self):
        return ExecutorSettings()


class TestWorkflowsWithoutWorkers(TestWorkflows):
    def get_executor_settings(self):
        return ExecutorSettings(cold=True)
