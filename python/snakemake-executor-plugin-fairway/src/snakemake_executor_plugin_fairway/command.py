"""What Snakemake leaves out of the command of a job, or says there so that something else is read."""

import contextlib
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from snakemake_interface_executor_plugins import utils


def general_words(workflow: Any) -> list[str]:
    """Flags of Snakemake that decide what its jobs make, and that it does not hand on to them itself."""
    words = []
    if workflow.config_settings.replace_workflow_config:
        words.append("--replace-workflow-config")
    if workflow.execution_settings.ignore_ambiguity:
        words.append("--allow-ambiguity")
    if workflow.storage_settings.notemp:
        words.append("--notemp")
    omitted = sorted(getattr(workflow.storage_settings, "omit_flags", ()))  # 9.0.0 has none
    if omitted:
        words += ["--omit-flags", *omitted]
    limits = list(_limits(workflow.global_resources))
    if limits:
        words += ["--resources", *limits]
    return words


def _limits(resources: Any) -> Iterator[str]:
    """What --resources says: a rule that asks for more is given no more."""
    for name in sorted(resources):
        value = resources[name]
        value = getattr(value, "value", value)
        if not name.startswith("_") and isinstance(value, int):  # those of Snakemake's own are other flags
            yield f"{name}={value}"


def target_words(spec: Iterable[Any]) -> list[str]:
    """The jobs that a command of Snakemake is to run: rules and wildcards.

    Raises:
        ValueError: Snakemake would read other wildcards.
    """
    words = []
    for one in spec:
        for name, value in one.wildcards_dict.items():
            if "," in str(value) or str(value).strip("'\"") != str(value):
                raise ValueError(f"wildcard {name} of rule {one.rulename} is {value}; Snakemake hands no value to a "
                                 "job that has a comma, or a quotation mark at its beginning or end: rename the "
                                 f"files, or have Snakemake itself run the rule (localrules: {one.rulename})")
        words.append(f"{one.rulename}:" + ",".join(f"{name}={value}" for name, value in one.wildcards_dict.items()))
    return words


@contextlib.contextmanager
def quoting_for_shells() -> Iterator[None]:
    """Have Snakemake quote values as a shell reads them.

    It quotes them as Python does, and passes over those that begin with a quotation mark: a shell, and we,
    would read another value where one has lines or both kinds of quotation marks.
    """
    before = utils.format_cli_value

    def quoted(value: Any, quote: bool = False, base64_encode: bool = False) -> str:
        if isinstance(value, str) and quote and not base64_encode:
            return shlex.quote(value)
        text: str = before(value, quote=quote, base64_encode=base64_encode)
        return text

    utils.format_cli_value = quoted
    try:
        yield
    finally:
        utils.format_cli_value = before
