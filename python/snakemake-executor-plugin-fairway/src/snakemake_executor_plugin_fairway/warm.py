"""What a worker loads once: all that `snakemake --mode remote` loads before it runs a job."""

import importlib
import itertools
import pkgutil

_SKIPPED = ("snakemake.common.tests", "snakemake.gui", "snakemake.report", "snakemake.linting", "snakemake.__main__",
            "snakemake.assets", "snakemake.template_rendering", "snakemake.unit_tests", "snakemake.script.python_host")
# Snakemake imports them when it reads a Snakefile.
_LATE = ("smart_open", "encodings.idna", "graphlib", "importlib.readers", "yaml")


def load() -> None:
    """Import modules of Snakemake, and have it look for its plugins."""
    import snakemake

    modules = (module.name for module in pkgutil.walk_packages(snakemake.__path__, "snakemake."))
    for name in itertools.chain(modules, _LATE):
        if not name.startswith(_SKIPPED):
            try:
                importlib.import_module(name)
            except Exception:  # it would be loaded by who needs it, or not at all
                pass
    from snakemake.cli import get_argument_parser

    get_argument_parser()


load()
