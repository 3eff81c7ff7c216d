"""CPython's tests of executors (Debian's libpython3.11-testsuite), on fairway.Executor.

They are those of ProcessPoolExecutor: calls are pickled and run in other processes. What the tests
reach for inside of that class is there under its name, as far as there is anything of the kind.
"""

import functools
import os
import types

from concurrent import futures
from concurrent.futures import process

import fairway
from process_pool import FairwayExecutor
from test import test_concurrent_futures as borrowed

# Errors that mean the same have other names.
borrowed.BrokenProcessPool = fairway.JobFailed
process._RemoteTraceback = RemoteTraceback = fairway.RemoteTraceback
RemoteTraceback.tb = property(lambda self: str(self))
# Programs that the tests start import the executor from concurrent.futures: cpython/sitecustomize.py puts it there.
_STARTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cpython")
borrowed.assert_python_ok = functools.partial(
    borrowed.assert_python_ok, PYTHONPATH=os.pathsep.join([_STARTED, os.environ["PYTHONPATH"]])
)
borrowed.futures = types.SimpleNamespace(**{**vars(futures), "process": process, "ProcessPoolExecutor": FairwayExecutor})


class _Mixin(borrowed.ProcessPoolSpawnMixin):
    executor_type = FairwayExecutor


class TestInitializer(borrowed.InitializerMixin, _Mixin, borrowed.BaseTestCase):
    pass


class TestFailingInitializer(borrowed.FailingInitializerMixin, _Mixin, borrowed.BaseTestCase):
    pass


class TestShutdown(borrowed.ProcessPoolShutdownTest, _Mixin, borrowed.BaseTestCase):
    pass


class TestWait(borrowed.WaitTests, _Mixin, borrowed.BaseTestCase):
    test_pending_calls_race = borrowed.ThreadPoolWaitTests.test_pending_calls_race


class TestAsCompleted(borrowed.AsCompletedTests, _Mixin, borrowed.BaseTestCase):
    pass


class TestExecutor(borrowed.ProcessPoolExecutorTest, _Mixin, borrowed.BaseTestCase):
    pass


class TestDeadlock(borrowed.ExecutorDeadlockTest, _Mixin, borrowed.BaseTestCase):
    pass
