"""Fairway: data-driven workflows from Python.

Executor is a concurrent.futures.Executor whose calls are jobs of Fairway: they survive crashes, run
in sandboxes, on one machine or a cluster. File is a file that stays in caches between calls.
Workflow builds a workflow as code. Run and Client ask what goes on. docs/python.md shows each.
"""

from ._client import Client, FairwayError
from ._executor import Executor, JobFailed
from ._file import File
from ._run import Run, Service
from ._workflow import Workflow

__all__ = ["Client", "Executor", "FairwayError", "File", "JobFailed", "Run", "Service", "Workflow"]
__version__ = "0.1.0"
