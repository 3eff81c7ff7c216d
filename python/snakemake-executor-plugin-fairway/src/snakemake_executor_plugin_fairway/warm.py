"""What a worker loads once: all that `snakemake --mode remote` loads before it runs a job."""

import importlib
import pkgutil

_SKIPPED = ("snakemake.common.tests", "snakemake.gui", "snakemake.report", "snakemake.linting", "snakemake.__main__",
            "snakemake.assets", "snakemake.template_rendering", "snakemake.unit_tests", "snakemake.script.python_host")


def load() -> None:
    """Import modules of Snakemake, and have it look for its plugins."""
    import snakemake

    for module in pkgutil.walk_packages(snakemake.__path__, "snakemake."):
        if not module.name.startswith(_SKIPPED):
            try:
                importlib.import_module(module.name)
            except Exception:  # it would be loaded by who needs it, or not at all
                pass
    from snakemake.cli import get_argument_parser

    get_argument_parser()


load()
