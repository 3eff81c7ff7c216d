from collections.abc import Callable, Iterable
from typing import Any, NoReturn

def serve(main: Callable[[list[str]], Any] | None = None, modules: Iterable[str] = ()) -> NoReturn:
    """Fork for each job that the pilot sends, and call main(argv) there (docs/commands-of-steps.md#warm-workers).

    Args:
        main: what a job does; its result is the exit code, as with sys.exit. Default: what `python3` would do.
        modules: are imported before. One that ends in a question mark may be missing.
    """
