"""A plugin of pytest: joblib's tests have the backend of Fairway in the place of loky's.

What they try with other backends alone is left to joblib.
"""

import os
import pathlib

import fairway.joblib
import joblib._parallel_backends
import joblib.parallel
import joblib.testing


class LokyBackend(fairway.joblib.FairwayBackend):
    """Has the name by which tests know loky's, which is the default: and that has one job where nobody says more."""

    default_n_jobs = 1


# Before the tests are read, which look for backends there.
joblib.parallel.BACKENDS["loky"] = joblib._parallel_backends.LokyBackend = LokyBackend

_call = joblib.testing.check_subprocess_call


def _call_patiently(cmd, timeout=None, stderr_regex=None, **kwargs):
    """Programs have the backend too, and more time: other work may slow them down.

    What they print is compared, but for the name of loky's processes.
    """
    folder = str(pathlib.Path(__file__).parent / "joblib_programs")
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    return _call(cmd, timeout=20 * timeout if timeout else None,
                 stderr_regex=None if stderr_regex == "LokyProcess" else stderr_regex, **kwargs)


joblib.testing.check_subprocess_call = _call_patiently

_OTHERS = ("multiprocessing", "threading", "sequential", "spawn")


def _backends(item):
    """The backends that a test is to be run with, by name."""
    parameters = getattr(item, "callspec", None)
    for name, value in parameters.params.items() if parameters else ():
        if "backend" in name and value is not None:
            kind = type(value)
            if kind is type:
                kind, value = value, None
            yield value if isinstance(value, str) else kind.__name__


def pytest_collection_modifyitems(config, items):
    kept = []
    for item in items:
        backends = list(_backends(item))
        others = [b for b in backends
                  if b in _OTHERS or b.removesuffix("Backend").lower() in _OTHERS or b == "SpawnContext"]
        if not backends or len(others) < len(backends):
            kept.append(item)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
