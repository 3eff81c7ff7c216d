"""Dask's tests of schedulers (in its wheel), on fairway.dask: those for all, and those of its scheduler
of processes that are not about how processes are made.
"""

import dask.base
import dask.tests.test_multiprocessing as borrowed
import pytest
from dask.tests.test_multiprocessing import (  # noqa: F401
    test_dumps_loads,
    test_errors_propagate,
    test_fuse_doesnt_clobber_intermediates,
    test_lambda_results_with_cloudpickle,
    test_lambda_with_cloudpickle,
    test_optimize_graph_false,
    test_random_seeds,
    test_unpicklable_args_generate_errors,
    test_works_with_highlevel_graph,
)
from dask.utils_test import GetFunctionTestMixin

import fairway
from fairway.dask import scheduler


@pytest.fixture(scope="module")
def get():
    with fairway.Executor(2) as executor:
        yield scheduler(executor)


@pytest.fixture(autouse=True)
def _replaced(get, monkeypatch):
    monkeypatch.setattr(borrowed, "get", get)
    monkeypatch.setitem(dask.base.named_schedulers, "processes", get)


class TestGet(GetFunctionTestMixin):
    @pytest.fixture(autouse=True)
    def _get(self, get):
        self.get = get
