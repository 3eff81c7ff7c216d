"""Runs what a program of Snakemake executes by another executor, and records how it ended.

FAIRWAY_SUITE_EXECUTOR says by which: "local" leaves that of the test. FAIRWAY_SUITE_RECORDS names the file
that gets a line of JSON for each execution: the exception, if any, the jobs that were finished, and the files
that there are then. What a job executes itself is not looked at.
"""

import functools
import json
import os

from snakemake.api import DAGApi, SnakemakeApi
from snakemake.dag import DAG
from snakemake_interface_executor_plugins.settings import ExecMode

_CORES = 2
_MOST = {"milliCpus": 1000 * _CORES, "memoryBytes": 10**9, "diskBytes": 10**9}
_LIMIT = 2000  # files of a folder that are looked at; one with more is no workflow's
_OWN = (".snakemake", ".fairway-snakemake", ".fairway", "__pycache__", ".cache", ".local")  # folders of programs
_SUBMIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "submit.sh")

chosen = os.environ["FAIRWAY_SUITE_EXECUTOR"]
records = os.environ.pop("FAIRWAY_SUITE_RECORDS", os.devnull)  # jobs do not get it
_workflow, _execute, _finish = SnakemakeApi.workflow, DAGApi.execute_workflow, DAG.finish
_finished: list[str] = []


@functools.wraps(_workflow)
def _workflow_of_two_cores(self, resource_settings, *args, workflow_settings=None, **kwargs):
    if workflow_settings is None or workflow_settings.exec_mode == ExecMode.DEFAULT:
        if resource_settings.cores is not None:
            resource_settings.cores = min(resource_settings.cores, _CORES)
        if chosen != "local":
            resource_settings.nodes = resource_settings.nodes or _CORES
            resource_settings.max_threads = min(resource_settings.max_threads or _CORES, _CORES)  # as cores do there
    if workflow_settings is not None:
        kwargs["workflow_settings"] = workflow_settings
    return _workflow(self, resource_settings, *args, **kwargs)


@functools.wraps(_finish)
async def _finish_and_note(self, job, *args, **kwargs):
    for one in job if job.is_group() else [job]:
        _finished.append(f"{one.rule.name} {sorted(one.wildcards_dict.items())}")
    return await _finish(self, job, *args, **kwargs)


@functools.wraps(_execute)
def _execute_and_record(self, executor="local", *args, executor_settings=None, **kwargs):
    if self.workflow_api.workflow_settings.exec_mode != ExecMode.DEFAULT or executor in ("dryrun", "touch"):
        return _execute(self, executor, *args, executor_settings=executor_settings, **kwargs)
    if executor in ("local", "cluster-generic") and chosen == "fairway":
        import snakemake_executor_plugin_fairway as plugin

        plugin.needs = _bounded
        executor, executor_settings = "fairway", plugin.ExecutorSettings(options="--has gpu=8")
    elif executor == "local" and chosen == "generic":
        from snakemake_executor_plugin_cluster_generic import ExecutorSettings

        executor, executor_settings = "cluster-generic", ExecutorSettings(submit_cmd=_SUBMIT)
    _finished.clear()
    error = ""
    try:
        return _execute(self, executor, *args, executor_settings=executor_settings, **kwargs)
    except BaseException as e:
        error = type(e).__name__
        raise
    finally:
        # Where one has failed, it is chance what had ended before.
        ended = {"jobs": sorted(_finished), "files": sorted(_files(os.getcwd()))} if not error else {}
        with open(records, "a", encoding="utf-8") as f:
            f.write(json.dumps({"error": error, **ended}) + "\n")


def _bounded(*args):
    """What a job needs, at most what a small machine has: a script for submission passes over what tests ask for."""
    from snakemake_executor_plugin_fairway.resources import needs

    asked = needs(*args)
    return {name: min(value, _MOST.get(name, value)) if isinstance(value, int) else value
            for name, value in asked.items()}


def _files(folder):
    """The files of a folder. What stands in those that matter is compared by the tests themselves."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _OWN]
        found += (os.path.relpath(os.path.join(place, name), folder) for name in names if name != "qsub.log")
        if len(found) > _LIMIT:
            return []
    return found


SnakemakeApi.workflow = _workflow_of_two_cores
DAG.finish = _finish_and_note
DAGApi.execute_workflow = _execute_and_record
