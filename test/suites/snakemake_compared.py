"""A plugin of pytest: each of Snakemake's tests ends with Fairway as with the executor that it has.

With --executor local the tests run as they are, and how each ended is written to the folder --records.
With --executor fairway each that can run on this machine must end alike: with the same outcome and, for all
that it executes, with the same error, jobs and files. --executor generic has Snakemake's executor for any batch
system in its place: what differs with that, too, is Snakemake's own.
"""

import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

_HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(_HERE / "snakemake"))
_popen = subprocess.Popen.__init__
_UNABLE = "cannot run here: "  # a record of a test that wants a tool, or the network


def pytest_addoption(parser):
    parser.addoption("--executor", choices=["local", "fairway", "generic"], required=True)
    parser.addoption("--records", type=pathlib.Path, required=True)
    parser.addoption("--resume", action="store_true", help="run only what --executor has not run before")
    parser.addoption("--share", default="0/1", help="K/N: of N parts of the tests, the one of number K")


def pytest_configure(config):
    os.environ["FAIRWAY_SUITE_EXECUTOR"] = config.getoption("executor")
    paths = [str(_HERE / "snakemake"), *os.environ["PYTHONPATH"].split(os.pathsep)]
    import substitute

    def popen(self, args, *more, env=None, **kwargs):
        """The tests put another PYTHONPATH in its place."""
        env = dict(os.environ if env is None else env)
        env["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [env.get("PYTHONPATH")])])
        words = args.split() if isinstance(args, str) else [os.fsdecode(word) for word in args]
        if "--mode" not in words and "snakemake" in map(os.path.basename, words[:3]):
            env["FAIRWAY_SUITE_RECORDS"] = substitute.records
        _popen(self, args, *more, env=env, **kwargs)

    subprocess.Popen.__init__ = popen
    _place(config).mkdir(parents=True, exist_ok=True)


def _place(config):
    """Where it is written how tests have ended."""
    records, executor = config.getoption("records"), config.getoption("executor")
    return records if executor == "local" else records / executor


def _name(item):
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", item.nodeid.rpartition("/")[2])


@pytest.hookimpl(hookwrapper=True)
def pytest_collection_modifyitems(config, items):
    yield  # all are looked at before some are taken away
    number, of = map(int, config.getoption("share").split("/"))
    place, records = _place(config), config.getoption("records")
    new = config.getoption("executor") == "local" or config.getoption("resume")
    kept = [item for k, item in enumerate(items) if k % of == number
            and not (new and (place / _name(item)).exists())  # what is known is not found out again
            and (place == records or (records / _name(item)).exists())]  # it is compared with something
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    import substitute

    records, executor = item.config.getoption("records"), item.config.getoption("executor")
    known = records / _name(item)
    before = known.read_text(encoding="utf-8") if executor != "local" else ""
    if before.startswith(_UNABLE):
        pytest.skip(before)
    lines = records / f"{_name(item)}.{os.getpid()}"
    substitute.records = str(lines)
    outcome = yield
    substitute.records = os.devnull
    executed = []
    if lines.exists():
        executed = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        lines.unlink()
    kind, error = outcome.excinfo[:2] if outcome.excinfo else (None, None)
    if kind is pytest.skip.Exception:
        return
    now = json.dumps({"test": kind.__name__ if kind else "passes", "executed": executed}, indent=1)
    if kind is not None and executor == "local" and not executed:
        now = f"{_UNABLE}{error}"
    (_place(item.config) / _name(item)).write_text(now, encoding="utf-8")
    if executor == "local":
        return
    if before == now:
        outcome.force_result(None)
        return
    found = "\n".join(difflib.unified_diff(before.splitlines(), now.splitlines(), "local", executor, "", "", 1, ""))
    outcome.force_exception(AssertionError(f"it does not end as with the other executor:\n{found}\n{error or ''}"))


def pytest_sessionfinish(session):
    """Where more tests cannot run than are compared, it is not they that want something."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    unable = sum(_UNABLE in str(report.longrepr) for report in reporter.stats.get("skipped", []))
    compared = sum(len(reporter.stats.get(ended, [])) for ended in ("passed", "failed", "xfailed"))
    if unable > compared:
        reporter.write_line(f"{unable} tests cannot run here, and {compared} were compared")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
