"""A line that changes, in a notebook or a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable


def display() -> Callable[[str], None]:
    """Show a line that replaces the one before."""
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        handle = sys.modules["IPython"].display.display("", display_id=True)
        return lambda line: handle.update(line)
    end = "\r" if sys.stderr.isatty() else "\n"
    return lambda line: print(line.ljust(78), end=end, file=sys.stderr, flush=True)
