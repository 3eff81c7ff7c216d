"""What runs in a job whose files travel: Snakemake in a sandbox that holds what the rule declares, and nothing else."""

import contextlib
import functools
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError

from .identity import mark, text_of

_KINDS = ("config", "input", "output", "log", "params")
_LENGTH = 8  # digits of the mark of each


def name_of(job: Any) -> str:
    """The name of a job that Snakemake gives it where it is submitted, and again in the job of Fairway."""
    return mark([job.rule.name, text_of(job.wildcards_dict)])


def declared(job: Any, root: str) -> str:
    """Marks of what is known of a job, one after the other.

    Args:
        root: the folder that holds the working folder and all sources: its path alone may differ.
    """
    params = [*map(str, job.params.items()), *map(repr, job.params)]
    known = [p for p in params if " at 0x" not in p]  # other objects have other names in each process
    values = [[text_of(job.rule.workflow.config)], job.input, job.output, job.log, known]
    return "".join(mark(str(v).replace(root, "") for v in value)[:_LENGTH] for value in values)


def compare(job: Any, expected: dict[str, str], root: str) -> None:
    """Refuse a job of which Snakemake knows something else here than where it was submitted.

    Raises:
        WorkflowError: what the Snakefile says of it depends on a file that is not here.
    """
    before, now = expected.get(name_of(job), ""), declared(job, root)
    places = range(0, len(now), _LENGTH)
    differ = [kind for kind, k in zip(_KINDS, places, strict=True) if before[k:k + _LENGTH] != now[k:k + _LENGTH]]
    if differ:
        why = (f"it has another {', '.join(differ)} in its job than where Snakemake was started: the Snakefile reads "
               "files that jobs do not have. Name them, such as --fairway-sources samples.tsv")
        print(f"Error in rule {job.rule.name}:\n{why}", file=sys.stderr, flush=True)  # Snakemake prints a traceback
        raise WorkflowError(why)


@contextlib.contextmanager
def sandboxed() -> Iterator[None]:
    """Have Snakemake run in the sandbox that is the working folder.

    The first word is JSON, which `Files.payload` has written; the second, which stays, is the folder of the
    sandbox in which Snakemake is to run.
    """
    from snakemake.jobs import Job

    sandbox, prepare = os.getcwd(), Job.prepare
    told: dict[str, Any] = json.loads(sys.argv.pop(1))
    os.makedirs(sys.argv[1], exist_ok=True)

    @functools.wraps(prepare)
    async def compared(self: Any, *args: Any, **kwargs: Any) -> Any:
        compare(self, told["expected"], os.path.join(sandbox, told["root"]))
        return await prepare(self, *args, **kwargs)

    Job.prepare = compared
    try:
        yield
    finally:  # what a job may make, or not, is kept under the names of one pattern
        os.makedirs(os.path.join(sandbox, told["kept"]), exist_ok=True)
        for k, path in enumerate(told["maybe"]):
            if os.path.lexists(os.path.join(sandbox, path)):
                os.rename(os.path.join(sandbox, path), os.path.join(sandbox, told["kept"], str(k)))
