"""Calls a function that does nothing, many times: functions.py NAME SLOTS CALLS prints calls a second.

The workers are there, and have been called, when the time begins.
"""

import os
import sys
import time


def nothing(x):
    return x


def pool(slots):
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(slots)


class Fairway:
    def __init__(self, slots):
        import fairway

        self.executor = fairway.Executor(slots)

    def map(self, f, xs):
        return self.executor.map(f, xs)

    def shutdown(self):
        self.executor.shutdown(cancel_futures=True)


class FairwayChunks(Fairway):
    def map(self, f, xs):
        return self.executor.map(f, xs, chunksize=50)


class Joblib:
    """Parallel by a backend of joblib."""

    def __init__(self, slots, backend="loky"):
        import joblib

        self.joblib, self.slots, self.backend = joblib, slots, backend

    def map(self, f, xs):
        with self.joblib.parallel_config(backend=self.backend, n_jobs=self.slots):
            return self.joblib.Parallel()(self.joblib.delayed(f)(x) for x in xs)

    def shutdown(self):
        pass


class FairwayJoblib(Joblib):
    def __init__(self, slots):
        import fairway.joblib

        fairway.joblib.register()
        super().__init__(slots, "fairway")


def search(self, _, xs):
    """The fits of a GridSearchCV, one for each of xs."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    values = [10 ** (k / 8) for k in range(max(1, len(xs) // 5))]
    with self.joblib.parallel_config(backend=self.backend, n_jobs=self.slots):
        GridSearchCV(SVC(), {"C": values}, cv=5).fit(*load_digits(return_X_y=True))
    return xs


class Dask:
    def __init__(self, slots):
        from distributed import Client

        self.client = Client(n_workers=slots, threads_per_worker=1, dashboard_address=None, silence_logs=50)

    def map(self, f, xs):
        return self.client.gather(self.client.map(f, xs, pure=False))

    def shutdown(self):
        self.client.shutdown()


class Parsl:
    def __init__(self, slots):
        import parsl
        from parsl.config import Config
        from parsl.executors import HighThroughputExecutor
        from parsl.providers import LocalProvider

        self.parsl = parsl
        parsl.load(Config(
            executors=[HighThroughputExecutor(max_workers_per_node=slots, provider=LocalProvider(init_blocks=1, max_blocks=1),
                                              address="127.0.0.1")],
            run_dir=os.path.join(os.getcwd(), "parsl"), usage_tracking=0,
        ))
        self.app = parsl.python_app(nothing)

    def map(self, _, xs):
        return [future.result() for future in [self.app(x) for x in xs]]

    def shutdown(self):
        self.parsl.dfk().cleanup()


class Ray:
    def __init__(self, slots):
        import ray

        self.ray = ray
        ray.init(num_cpus=slots, include_dashboard=False, log_to_driver=False)
        self.call = ray.remote(nothing)

    def map(self, _, xs):
        return self.ray.get([self.call.remote(x) for x in xs])

    def shutdown(self):
        self.ray.shutdown()


if __name__ == "__main__":
    kind = {
        "fairway": Fairway, "fairway chunks": FairwayChunks, "ProcessPoolExecutor": pool, "dask": Dask, "parsl": Parsl,
        "ray": Ray, "joblib": FairwayJoblib, "loky": Joblib,
        "GridSearchCV": type("Search", (FairwayJoblib,), {"map": search}),
        "GridSearchCV loky": type("Search", (Joblib,), {"map": search}),
    }[sys.argv[1]]
    calls = int(sys.argv[3])
    executor = kind(int(sys.argv[2]))
    try:
        for _ in range(2):  # all workers are there
            list(executor.map(nothing, range(20)))
        began = time.perf_counter()
        found = sum(executor.map(nothing, range(calls)))
        took = time.perf_counter() - began
        assert found == sum(range(calls))
    finally:  # also after Ctrl-C
        executor.shutdown()
    print(calls / took)
