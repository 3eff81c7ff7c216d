"""Gives the jobs of Snakemake to an open run of Fairway (docs/snakemake.md)."""

import asyncio
import itertools
import os
import re
import shlex
import shutil
import threading
import time
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Optional  # Optional: Snakemake reads the types of settings

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase
from snakemake_interface_executor_plugins.utils import encode_target_jobs_cli_args, format_cli_arg

from fairway import Client, FairwayError, OpenRun

from .command import general_words, quoting_for_shells, target_words
from .files import Files
from .identity import deciding, made, mark, of_workflow
from .resources import needs, requested, tasks

_FOLDER = ".fairway-snakemake"  # of a run that this Snakemake opens
_IN_ORDER = "ended"  # a file there that says that nothing of it goes on
_END_TIME = 120.0  # seconds for a job of an earlier Snakemake to end
_LOOK = 0.1  # seconds after which it is looked again whether it has
_GOES_ON = ("waiting", "ready", "assigned", "running")  # states of jobs
_GATHER = 0.005  # seconds for which jobs that end are gathered

# How Snakemake says in a job why it failed; its last line is always the same.
_REASON = re.compile(r"^(\w+ in (?:file|rule) .*:)\n(.+)$", re.MULTILINE)

# Becomes Snakemake in the working folder of the workflow, which is not that of the job. A timer of its
# scheduler, which has nothing left to do, would hold its end back for a second.
_BECOME = """import os,sys,threading
os.chdir(sys.argv[1])
sys.argv[:]=['snakemake']+sys.argv[2:]
from snakemake.cli import main
try:
 main()
finally:
 for t in threading.enumerate():
  if isinstance(t,threading.Timer) and t.function.__module__.startswith('snakemake.sched'):
   t.cancel()
"""


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    """What --fairway-... says."""

    run: Optional[str] = field(
        default=None,
        metadata={"help": "Folder of the run, or of a server that lasts (fairway serve), or a copy of its service "
                  "file. Default: .fairway-snakemake in the working folder, for a run that ends with Snakemake."},
    )
    site: Optional[str] = field(
        default=None, metadata={"help": "Sites to run on, separated by commas, as with `fairway run --site`."}
    )
    pilots: int = field(
        default=1, metadata={"help": "Number of pilots on this machine; one alone has all of its processors."}
    )
    options: str = field(default="", metadata={"help": "Further words for `fairway open`."})
    cold: bool = field(
        default=False,
        metadata={"help": "Start Snakemake for each job, instead of forking a process that has loaded it."},
    )
    files: bool = field(
        default=False,
        metadata={"help": "Jobs bring their files: nodes need not share the working folder."},
    )
    sources: Optional[str] = field(
        default=None,
        metadata={"help": "Patterns of files, separated by commas, that Snakefiles and scripts read beside what they "
                  "declare, relative to the folder where Snakemake was started. For --fairway-files."},
    )


common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=0,
)


class Executor(RemoteExecutor):
    """Submits jobs many at a time, and hears of their ends by one stream."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        # Before the thread of the base class begins, which waits for jobs from then on.
        self._lock = threading.Lock()  # guards the two that follow
        self._endings: dict[str, dict[str, Any]] = {}  # messages EndedJob, by name
        self._active: dict[str, None] = {}  # names of jobs whose end Snakemake has not heard of
        self._failure: BaseException | None = None
        self._stopped = False
        self._changed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._prefix = uuid.uuid4().hex[:8]
        self._count = 0
        self._earlier: dict[str, list[tuple[int, str]]] = {}  # jobs of another Snakemake that go on: run, name; by made
        super().__init__(workflow, logger)

    def __post_init__(self) -> None:
        if self.workflow.remote_execution_settings.immediate_submit:
            raise WorkflowError("Snakemake with --immediate-submit submits jobs before what they read is there, and "
                                "ends before they do: start Snakemake with Fairway without --immediate-submit")
        settings = self.workflow.executor_settings
        self._settings: ExecutorSettings = settings if settings is not None else ExecutorSettings()
        self._folder = os.path.abspath(
            self.workflow.workdir_init if self.workflow.storage_settings.assume_common_workdir else ".")
        self._run_name = "snakemake-" + mark([self._folder])[:8]
        self._workflow_mark = of_workflow(self.workflow)
        self._opened: OpenRun | None = None
        self._files: Files | None = None

    @property
    def _run(self) -> OpenRun:
        """The run, which is opened when it is needed first: often there is nothing to be done."""
        if self._opened is None:
            try:
                self._open()
                self._find_earlier()
            except (FairwayError, OSError) as e:
                raise WorkflowError(f"Fairway: {e}") from e
        assert self._opened is not None
        return self._opened

    # The run.

    def _open(self) -> None:
        s, place = self._settings, self._settings.run or _FOLDER
        lasting = os.path.isfile(place) or os.path.exists(os.path.join(place, ".fairway", "lasting"))
        if s.run is None:
            _forget(os.path.abspath(place))
        self._opened = OpenRun(
            None if lasting else place, server=place if lasting else None, name=self._run_name, pilots=s.pilots,
            site=[site for site in (s.site or "").split(",") if site], options=shlex.split(s.options),
            on_end=self._ended, on_failure=self._failed_for_good,
        )
        self._lasting = lasting
        if self._run.ignored and (s.site or s.options or s.pilots != ExecutorSettings.pilots):
            self.logger.warning(f"Fairway: {self._run.ignored}, and start Snakemake again.")

    def _find_earlier(self) -> None:
        """Find what goes on though the Snakemake that submitted it was killed."""
        runs = [0]
        if self._lasting:  # it had another run there
            runs += [run["run"] for run in self._run.call("ListRuns").get("runs", [])
                     if run["workflow"] == self._run_name and run["state"] == "underway"
                     and run["run"] != self._run.client.run]
        for run in runs:
            for job in self._run.jobs(_GOES_ON, run):
                found = re.fullmatch(r".*-([0-9a-f]{16})-[0-9a-f]{16}-[0-9a-f]{8}-[0-9]+", job["name"])
                if found:
                    self._earlier.setdefault(found.group(1), []).append((run, job["name"]))
        if not self._lasting and not self._run.ignored:  # it has started the server, so nobody waits for them
            for run, name in itertools.chain.from_iterable(self._earlier.values()):
                self._end(run, name)
            self._earlier.clear()

    def _ended(self, ended: list[dict[str, Any]]) -> None:
        with self._lock:
            self._endings.update((e["summary"]["name"], e) for e in ended)
        self._wake()

    def _failed_for_good(self, error: BaseException) -> None:
        self._failure = error
        self._wake()

    def _wake(self) -> None:
        if self._loop is not None and self._changed is not None:
            try:
                self._loop.call_soon_threadsafe(self._changed.set)
            except RuntimeError:
                pass  # nobody waits any more

    # Jobs.

    def additional_general_args(self) -> str:
        return shlex.join(general_words(self.workflow))

    def get_job_args(self, job: JobExecutorInterface) -> str:
        spec = job.get_target_spec()
        theirs = format_cli_arg("--target-jobs", encode_target_jobs_cli_args(spec))
        words: str = super().get_job_args(job)
        return words.replace(theirs, shlex.join(["--target-jobs", *target_words(spec)]), 1)

    def format_job_exec(self, job: JobExecutorInterface) -> str:
        with quoting_for_shells():
            text: str = super().format_job_exec(job)
        return text

    def run_jobs(self, jobs: list[JobExecutorInterface]) -> None:
        for job in jobs:
            self.run_job_pre(job)
        self._submit(list(jobs))

    def run_job(self, job: JobExecutorInterface) -> None:
        self._submit([job])

    def _submit(self, jobs: list[JobExecutorInterface]) -> None:
        run, fresh = self._run, {}
        for job in jobs:
            info = None
            try:
                if not self._resumed(job):
                    message = self._message(job)
                    info = SubmittedJobInfo(job, external_jobid=message["name"])
                    fresh[message["name"]] = (info, message)
            except (ValueError, OSError) as e:
                self.report_job_error(SubmittedJobInfo(job), msg=f"Fairway refuses this job: {e}\n")
            except FairwayError as e:
                self.report_job_error(info or SubmittedJobInfo(job), msg=f"Fairway takes no jobs: {e}\n")
        if not fresh:
            return
        with self._lock:
            self._active.update((name, None) for name in fresh)
        try:
            refused = run.submit([message for _, message in fresh.values()])
        except FairwayError as e:
            refused = dict.fromkeys(fresh, e)
        for name, (info, _) in fresh.items():
            if name in refused:
                self._refused(info, refused[name])
            else:
                self.report_job_submission(info)

    def _refused(self, info: SubmittedJobInfo, error: FairwayError) -> None:
        with self._lock:
            self._active.pop(info.external_jobid, None)
        what = "takes no jobs" if error.code == "unavailable" else "refuses this job"
        hint = ""
        if "processors; a pilot has" in str(error):
            hint = ("; of Snakemake: --max-threads N bounds the threads of all rules, --fairway-pilots N is how many "
                    "pilots share this machine")
        self.report_job_error(info, msg=f"Fairway {what}: {error}{hint}\n")

    def _resumed(self, job: JobExecutorInterface) -> bool:
        """Wait for the job that an earlier Snakemake has submitted, if it goes on and is the same in all that decides.

        One that makes the same files by anything else is ended before, so that no two write them.
        """
        earlier = self._earlier.pop(made(job, self._folder), [])
        if not earlier:
            return False
        decides = self._decides(job, self.format_job_exec(job))
        for run, name in earlier:
            if run or decides is None or f"-{decides}-" not in name or self.workflow.dag_settings.force_incomplete:
                self._end(run, name)
                continue
            with self._lock:
                self._active[name] = None
            if self._run.watch(name) in _GOES_ON:
                self.logger.info(f"Job {name} of Fairway goes on, and is waited for.")
                self.report_job_submission(SubmittedJobInfo(job, external_jobid=name))
                return True
            with self._lock:  # who knows what has become of its files since
                self._active.pop(name, None)
                self._endings.pop(name, None)
        return False

    def _end(self, run: int, name: str) -> None:
        """End a job of an earlier Snakemake, and wait until nothing of it runs."""
        self.logger.info(f"Job {name} of Fairway is ended: it is not what is asked for now.")
        where = {"run": run} if run else {}
        self._run.call("Cancel", {"jobs": [name], **where})
        if run:
            self._run.call("CloseInput", where)  # nobody submits to it any more
        deadline = time.monotonic() + _END_TIME
        while True:
            attempts = self._run.call("ShowJob", {"job": name, **where}).get("attempts", [])
            if all(attempt.get("outcome") not in ("assigned", "staging", "ready", "running") for attempt in attempts):
                return
            if time.monotonic() > deadline:
                raise FairwayError(
                    "unavailable", f"job {name} of an earlier Snakemake, which makes the same, does not end")
            time.sleep(_LOOK)

    def _decides(self, job: JobExecutorInterface, text: str) -> str | None:
        """A mark of all that decides what a job makes; None: not known. text is its command."""
        if self._workflow_mark is None or self._settings.files:
            return None  # what goes on makes its files where nobody would look for them
        # The order of some words is random, and some name folders that are new for each Snakemake.
        words = re.sub(r"--runtime-source-cache-path \S+", "", text.replace(self.tmpdir, "")).split()
        return deciding(job, self._folder, [self._workflow_mark, *sorted(words)])

    def _message(self, job: JobExecutorInterface) -> dict[str, Any]:
        self._count += 1
        text = self.format_job_exec(job)
        payload: dict[str, Any] = {"environment": {k: str(v) for k, v in self.envvars().items()}}
        words = shlex.split(text)
        python = self.get_python_executable()
        if self._settings.files and words[:3] != [python, "-m", "snakemake"]:
            raise ValueError("its files do not travel where something is to be done before: leave --precommand out")
        if words[:3] == [python, "-m", "snakemake"]:
            payload["argv"] = [python, "-c", _BECOME, self._folder, *words[3:]]
            if not self._settings.cold:
                payload["worker"] = f"{python} fairway:python snakemake_executor_plugin_fairway.warm?"
        else:  # something is to be done before
            payload["shell"] = f"cd {shlex.quote(self._folder)} && {text}"
        marks = f"{made(job, self._folder)}-{self._decides(job, text) or '0' * 16}"
        message = {
            "name": f"{self._name(job)}-{marks}-{self._prefix}-{self._count}",
            "step": re.sub(r"[^A-Za-z0-9_.-]+", "_", job.name).strip("._-")[:100] or "job",
            "payload": payload,
            "needs": needs(requested(job), job.threads),
            "retry": {"attempts": 1},  # Snakemake itself tries again what has failed
            **tasks(job.resources),
        }
        if self._settings.files:
            if self._files is None:
                patterns = filter(None, (self._settings.sources or "").split(","))
                self._files = Files(self.workflow, patterns, "w" + self._prefix)
            self._files.complete(message, job, words[3:], _BECOME)
        return message

    def _name(self, job: JobExecutorInterface) -> str:
        if job.is_group():
            return re.sub(r"[^A-Za-z0-9_.=,+-]+", "_", f"group-{job.name}")[:150]
        values = [f"{k}={v}" for k, v in sorted(job.wildcards_dict.items())]
        return re.sub(r"[^A-Za-z0-9_.=,+-]+", "_", ",".join([job.name, *values]))[:150]

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncGenerator[SubmittedJobInfo, None]:
        if self._failure is not None:
            raise WorkflowError(f"Fairway: {self._failure}")
        for info in active_jobs:
            with self._lock:
                ended = self._endings.pop(info.external_jobid, None)
                if ended is not None:
                    self._active.pop(info.external_jobid, None)
            if ended is None:
                yield info
            elif ended["summary"]["state"] == "done":
                self._done(info, ended)
            else:
                self._failed(info, ended["summary"])

    def _done(self, info: SubmittedJobInfo, ended: dict[str, Any]) -> None:
        try:
            if self._files is not None:
                self._files.bring(info.external_jobid, ended.get("writes", []), self._run)
        except (FairwayError, OSError) as e:
            self.report_job_error(info, msg=f"Fairway: what it has made cannot be brought here: {e}\n")
        else:
            self.report_job_success(info)

    def handle_job_success(self, job: JobExecutorInterface) -> None:
        super().handle_job_success(job)
        if self._files is not None:
            self._files.settled(job)

    def _failed(self, info: SubmittedJobInfo, summary: dict[str, Any]) -> None:
        logs, text = [], ""
        try:
            text = self._run.client.logs(info.external_jobid)
            path = os.path.abspath(os.path.join(".snakemake", "fairway_logs", info.external_jobid + ".log"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            logs.append(path)
        except (FairwayError, OSError):
            pass  # it printed nothing
        reason = summary.get("reason") or summary["state"]
        error = _REASON.search(text) if reason.startswith("exit code") else None
        if error:
            reason = " ".join(error.groups())
        if self._settings.files and "No such file" in reason + text:
            reason += "; files that Snakefiles and scripts read beside what they declare are named by --fairway-sources"
        self.report_job_error(info, msg=f"Fairway: {reason}\n", aux_logs=logs)

    def print_job_error(self, job_info: SubmittedJobInfo, msg: str | None = None, **kwargs: Any) -> None:
        job = job_info.job
        if not job.is_group():
            super().print_job_error(job_info, msg, **kwargs)
            return
        # Snakemake drops the message of a group, and prints its jobs with none.
        self.logger.error(f"Error in group {job.groupid}: {(msg or '').strip()}")
        for member in sorted(job.jobs, key=lambda j: j.rule.name):
            member.log_error(msg=msg, indent=True, external_jobid=job_info.external_jobid, **kwargs)

    async def sleep(self) -> None:
        """Wait until a job has ended, or was submitted and had ended before."""
        if self._changed is None:
            self._loop, self._changed = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            if self._endings or self._stopped or self._failure is not None:
                self._changed.set()
        try:
            await asyncio.wait_for(self._changed.wait(), 1.0)
        except asyncio.TimeoutError:
            return
        self._changed.clear()
        await asyncio.sleep(_GATHER)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        with self._lock:
            names = list(self._active)
        try:
            if self._opened is not None:
                self._opened.cancel(names)
        except FairwayError:
            pass  # the server has ended, and they with it

    def shutdown(self) -> None:
        already, self._stopped = self._stopped, True
        self._wake()
        super().shutdown()
        if already or self._opened is None:
            return
        self._opened.close()
        folder = self._opened.client.location
        if self._settings.run is None and os.path.isdir(folder) and not self._opened.client.answers():
            with open(os.path.join(folder, _IN_ORDER), "w"):
                pass


def _forget(folder: str) -> None:
    """Remove the records of the Snakemake before, if it ended in order: nobody needs them when the next one begins."""
    state, old = os.path.join(folder, ".fairway"), os.path.join(folder, uuid.uuid4().hex[:8])
    try:
        os.remove(os.path.join(folder, _IN_ORDER))  # one alone of those that begin at a time
        if not Client(folder).answers():
            os.rename(state, old)
            shutil.rmtree(old, ignore_errors=True)
    except FileNotFoundError:
        pass  # it is the first, or did not end in order
