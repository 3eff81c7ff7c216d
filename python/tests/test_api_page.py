"""docs/python-api.md is that of the docstrings, which are complete."""

import importlib.util
import os
import unittest

_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
_SCRIPT = os.path.join(_ROOT, "scripts", "python-api.py")


class PageTest(unittest.TestCase):
    def test_page_of_the_api_is_that_of_docstrings(self):
        if not os.path.exists(_SCRIPT) or not all(map(importlib.util.find_spec, ("joblib", "dask"))):
            self.skipTest("it stands in the repository, and names joblib and Dask")
        spec = importlib.util.spec_from_file_location("python_api", _SCRIPT)
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        missing = []
        page = script.page(missing)
        self.assertEqual(missing, [])
        with open(os.path.join(_ROOT, "docs", "python-api.md"), encoding="utf-8") as f:
            self.assertEqual(f.read(), page, "run `make generate-python`")
