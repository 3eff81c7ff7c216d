"""A plugin of pytest: tests of others that Fairway does not pass, and why.

The file that --left-out names has one a line: the name of the test, as pytest prints it after the
file, and the reason. A name that ends in * is the beginning of several. Each must fail; with ! before
its name it is not run, since it would not end. A name that no test has is an error, as is a test that
fails without standing there. Lines that begin with # are comments.
"""

import pytest


def pytest_addoption(parser):
    parser.addoption("--left-out", required=True, help="file with the tests that are left out")


def _read(path):
    listed = {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if line and not line.startswith("#"):
                name, _, reason = line.partition("  ")
                if not reason.strip():
                    raise pytest.UsageError(f"{path}:{number}: two spaces and a reason come after the name")
                listed[name.lstrip("!")] = (reason.strip(), name.startswith("!"))
    return listed


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    listed = _read(config.getoption("left_out"))
    unknown = set(listed)
    for item in items:
        name = item.nodeid.partition("::")[2]
        for entry, (reason, never) in listed.items():
            if name == entry or entry.endswith("*") and name.startswith(entry[:-1]):
                unknown.discard(entry)
                item.add_marker(pytest.mark.xfail(reason=reason, run=not never, strict=True))
    # Who asks for some tests only does not ask for all that are listed.
    if unknown and not config.getoption("keyword") and not any("::" in word for word in config.args):
        raise pytest.UsageError("no test has these names, which are left out: " + ", ".join(sorted(unknown)))
