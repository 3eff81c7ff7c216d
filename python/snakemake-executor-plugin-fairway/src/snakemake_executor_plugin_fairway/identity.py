"""What tells a job of a workflow from others, so that none is taken for another."""

import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

_LENGTH = 16  # hexadecimal digits of a mark


def made(job: JobExecutorInterface, folder: str) -> str:
    """A mark of the files that a job makes: of two with the same, one alone may run."""
    files = sorted(os.path.join(folder, str(f)) for f in job.output)
    return mark(files or [folder, *(str(spec) for spec in job.get_target_spec())])


def of_workflow(workflow: Any) -> str | None:
    """A mark of what decides what all jobs of a workflow make; None: not all of that can be read."""
    try:
        snakefiles = sorted(map(place_of, workflow.included))
        variables = workflow.spawned_job_args_factory.envvars()
        return mark([sys.executable, text_of(workflow.config), text_of(variables), *_contents(snakefiles)])
    except OSError:
        return None


def deciding(job: Any, folder: str, common: Iterable[str]) -> str | None:
    """A mark of all that decides what a job makes.

    Args:
        common: what it has in common with others, such as how Snakemake is called for it.

    Returns:
        None: that cannot be known, since something that decides cannot be read.
    """
    parts = [folder, *common]
    try:
        for one in sorted(job.jobs, key=lambda j: j.jobid) if job.is_group() else [job]:
            parts += _of_one(one, folder)
        return mark(parts)
    except OSError:
        return None


def _of_one(job: Any, folder: str) -> Iterator[str]:
    rule = job.rule
    # The code of run: is that of the Snakefiles.
    yield from (rule.name, str(job.shellcmd), str(job.container_img_url), str(rule.wrapper))
    yield from (text_of(job.wildcards_dict), text_of(job.resources), text_of(job.params), repr(list(job.params)))
    files = [rule.script, rule.notebook, rule.template_engine, rule.cwl, getattr(job.conda_env_spec, "file", None)]
    yield from _contents([str(f) for f in files if f is not None], [place_of(rule.basedir), folder])
    for path in [str(f) for f in job.input]:
        status = os.stat(os.path.join(folder, path))
        if not stat.S_ISREG(status.st_mode):
            raise IsADirectoryError(path)
        yield f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def place_of(source: Any) -> str:
    """The path of a file of a workflow, or its URI."""
    try:
        return str(source.get_path_or_uri(secret_free=True))
    except TypeError:  # the first versions of Snakemake 9 do not know of secrets
        return str(source.get_path_or_uri())


def text_of(values: Any) -> str:
    """Pairs of a mapping, or of what Snakemake has instead, in one order."""
    return repr(sorted((str(name), repr(value)) for name, value in values.items()))


def _contents(paths: Iterable[str], folders: Iterable[str] = ("",)) -> Iterator[str]:
    """Names and contents of files, each in the first of the folders that has it."""
    for path in paths:
        found = next((p for p in (os.path.join(f, path) for f in folders) if os.path.exists(p)), path)
        with open(found, "rb") as f:
            yield f"{path} {hashlib.sha256(f.read()).hexdigest()}"


def mark(parts: Iterable[str]) -> str:
    """The hash of texts."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:_LENGTH]
