"""Fairway: data-driven workflows from Python.

Executor is a concurrent.futures.Executor whose calls are jobs of Fairway: they survive crashes, run
in sandboxes, on one machine or a cluster. File is a file that stays in caches between calls.
Workflow builds a workflow as code. Run and Client ask what goes on, and OpenRun submits jobs.
docs/python.md shows each.
"""

from ._connection import Client
from ._errors import FairwayError, JobFailed, RemoteTraceback
from ._executor import Executor
from ._file import File
from ._future import Future
from ._open_run import OpenRun
from ._run import Run, Service
from ._workflow import Workflow

__all__ = [
    "Client",
    "Executor",
    "FairwayError",
    "File",
    "Future",
    "JobFailed",
    "OpenRun",
    "RemoteTraceback",
    "Run",
    "Service",
    "Workflow",
]
__version__ = "0.1.0"
