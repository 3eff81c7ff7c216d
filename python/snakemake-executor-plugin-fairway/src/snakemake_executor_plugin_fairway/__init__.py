"""Gives the jobs of Snakemake to an open run of Fairway (docs/snakemake.md)."""

import asyncio
import hashlib
import os
import re
import shlex
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, AsyncGenerator, Dict, List, Optional

from fairway import Client, FairwayError
from fairway._program import Server
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

_ENDED = ("done", "failed", "blocked", "cancelled")
_MAX_BATCH = 1000  # jobs of one call
_AGAIN_PAUSE = 0.2  # seconds
_AWAY_TIME = 120.0  # seconds for which a server that does not answer is asked again
_OPEN = ["open", "--name", "snakemake", "--watch-inputs", "none"]

# Becomes Snakemake in the working folder of the workflow, which is not that of the job.
_BECOME = "import os,sys;os.chdir(sys.argv[1]);sys.argv[:]=['snakemake']+sys.argv[2:];from snakemake.cli import main;main()"


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    """What --fairway-... says."""

    run: Optional[str] = field(
        default=None,
        metadata={"help": "Folder of the run, or of a server that lasts (fairway serve), or a copy of its service file. "
                  "Default: .fairway-snakemake in the working folder; a run is opened there if none is open."},
    )
    site: Optional[str] = field(
        default=None, metadata={"help": "Sites to run on, separated by commas, as with `fairway run --site`."}
    )
    pilots: int = field(
        default=1, metadata={"help": "Number of pilots on this machine; one alone has all of its processors."}
    )
    options: str = field(default="", metadata={"help": "Further words for `fairway open`."})
    cold: bool = field(
        default=False, metadata={"help": "Start Snakemake for each job, instead of forking a process that has loaded it."}
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
        self._lock = threading.Lock()  # guards what follows
        self._endings: Dict[str, Dict[str, Any]] = {}  # summaries of jobs that have ended, by name
        self._waiting: Dict[str, None] = {}  # names of jobs whose end is awaited
        self._failure: Optional[BaseException] = None
        self._server: Optional[Server] = None
        self._stop = threading.Event()
        self._news: Optional[asyncio.Event] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._ready = threading.Event()
        self._prefix = uuid.uuid4().hex[:8]
        self._count = 0
        self._left: Dict[str, str] = {}  # jobs of an earlier Snakemake that go on, by what tells them from others
        super().__init__(workflow, logger)

    def __post_init__(self) -> None:
        settings = self.workflow.executor_settings
        self._settings: ExecutorSettings = settings if settings is not None else ExecutorSettings()
        self._open()
        self._listener = threading.Thread(target=self._listen, name="fairway-endings", daemon=True)
        self._listener.start()

    # The run.

    def _open(self) -> None:
        at = self._settings.run or ".fairway-snakemake"
        self._words = [*_OPEN, "--pilots", str(self._settings.pilots), *shlex.split(self._settings.options)]
        for site in (self._settings.site or "").split(","):
            if site:
                self._words += ["--site", site]
        try:
            if not os.path.isfile(at):
                os.makedirs(at, exist_ok=True)
            self._client = Client(at)
            self._ours = self._settings.run is None
            if os.path.exists(os.path.join(self._client.at, ".fairway", "lasting")) or os.path.isfile(at):
                import base64

                text = base64.b64encode(b"workflow: snakemake\nopen: true\n").decode()
                self._client.run = self._client.call("SubmitWorkflow", {"workflow": text, "file": "snakemake"})["run"]
                self._ours = True  # the run, not the server
            elif self._answers():
                self._find_left()
            else:
                self._ours = True
                self._server = Server(self._client.at, self._words)
                self._server.wait_open(self._client)
                return
        except (FairwayError, OSError) as e:
            raise WorkflowError(f"Fairway: {e}") from e
        s = self._settings
        if s.site or s.options or s.pilots != 1:
            self.logger.warning(
                f"Fairway: the run in {at} is open already, with pilots of its own: --fairway-site, --fairway-pilots and "
                f"--fairway-options change nothing there. To have them, end it with `fairway -C {shlex.quote(at)} close`, "
                "and start Snakemake again."
            )

    def _find_left(self) -> None:
        """Find what goes on in the run though the Snakemake that submitted it was killed."""
        request: Dict[str, Any] = {"states": ["waiting", "ready", "assigned", "running"], "limit": 1000}
        while True:
            answer = self._client.call("ListJobs", request)
            for job in answer.get("jobs", []):
                found = re.fullmatch(r".*-([0-9a-f]{16})-[0-9a-f]{8}-[0-9]+", job["name"])
                if found:
                    self._left[found.group(1)] = job["name"]
            if not answer.get("more"):
                return
            request["after"] = answer["jobs"][-1]["id"]

    def _answers(self) -> bool:
        try:
            self._client.call("ListJobs", {"limit": 1})
            return True
        except FairwayError as e:
            return e.code != "unavailable"

    def _revive(self) -> None:
        """Start our server again if it was killed."""
        with self._lock:
            server = self._server
            if server is not None and server.process.poll() is not None and not self._stop.is_set():
                self._server = Server(self._client.at, self._words)
                server.stop()
                self._server.wait_open(self._client)
                return
        time.sleep(_AGAIN_PAUSE)

    def _asked(self, name: str, request: Dict[str, Any]) -> Dict[str, Any]:
        deadline = time.monotonic() + _AWAY_TIME
        while True:
            try:
                return self._client.call(name, request)
            except FairwayError as e:
                if e.code != "unavailable" or time.monotonic() > deadline or self._stop.is_set():
                    raise
                self._revive()

    def _listen(self) -> None:
        """Hear of jobs that have ended."""
        deadline = time.monotonic() + _AWAY_TIME
        while not self._stop.is_set():
            try:
                again = self._ready.is_set()
                for report in self._client.stream("Endings"):
                    deadline = time.monotonic() + _AWAY_TIME
                    if again:
                        again = False
                        self._look()
                    self._ready.set()
                    self._note([ended["summary"] for ended in report.get("jobs", [])])
                    if self._stop.is_set():
                        return
                time.sleep(_AGAIN_PAUSE)
            except BaseException as e:
                if self._stop.is_set():
                    return
                try:
                    if not isinstance(e, FairwayError) or e.code != "unavailable" or time.monotonic() > deadline:
                        raise
                    self._revive()
                except BaseException as failure:
                    self._failure = failure
                    self._ready.set()
                    self._wake()
                    return

    def _look(self) -> None:
        """Look at all jobs whose end is awaited."""
        with self._lock:
            names = list(self._waiting)
        for name in names:
            self._look_at(name)

    def _look_at(self, name: str) -> Optional[str]:
        """The state of a job, None where there is none."""
        try:
            summary = self._client.call("ShowJob", {"job": name})["summary"]
        except FairwayError as e:
            if e.code != "not_found":
                raise
            return None
        if summary["state"] in _ENDED:
            self._note([summary])
        return summary["state"]

    def _note(self, summaries: List[Dict[str, Any]]) -> None:
        with self._lock:
            ended = {s["name"]: s for s in summaries if s["name"] in self._waiting}
            self._endings.update(ended)
        if ended:
            self._wake()

    def _wake(self) -> None:
        if self._loop is not None and self._news is not None:
            try:
                self._loop.call_soon_threadsafe(self._news.set)
            except RuntimeError:
                pass  # nobody waits any more

    # Jobs.

    def run_jobs(self, jobs: List[JobExecutorInterface]) -> None:
        for job in jobs:
            self.run_job_pre(job)
        self._submit(list(jobs))

    def run_job(self, job: JobExecutorInterface) -> None:
        self._submit([job])

    def _submit(self, jobs: List[JobExecutorInterface]) -> None:
        self._ready.wait()
        fresh = []
        for job in jobs:
            before = self._left.pop(_mark(job), None)
            if before and self._resume(job, before):
                continue
            fresh.append((job, self._message(job)))
        for begin in range(0, len(fresh), _MAX_BATCH):
            self._add(fresh[begin: begin + _MAX_BATCH])

    def _add(self, batch: List[Any]) -> None:
        infos = [SubmittedJobInfo(job, external_jobid=message["name"]) for job, message in batch]
        with self._lock:
            self._waiting.update((info.external_jobid, None) for info in infos)
        try:
            if self._failure is not None:
                raise self._failure
            self._asked("Submit", {"jobs": [message for _, message in batch]})
        except Exception as e:
            if len(batch) > 1 and isinstance(e, FairwayError) and e.code == "invalid_argument":
                for one in batch:
                    self._add([one])
                return
            what, hint = "takes no jobs", ""
            if isinstance(e, FairwayError) and e.code == "invalid_argument":
                what = "refuses this job"
            if "processors; a pilot has" in str(e):
                hint = ("; of Snakemake: --max-threads N bounds the threads of all rules, --fairway-pilots N is how many "
                        "pilots share this machine")
            for info in infos:
                self.report_job_error(info, msg=f"Fairway {what}: {e}{hint}\n")
            return
        for info in infos:
            self.report_job_submission(info)

    def _resume(self, job: JobExecutorInterface, name: str) -> bool:
        """Wait for a job that an earlier Snakemake has submitted, if it goes on or has ended well.

        With --rerun-incomplete it is ended.
        """
        if self.workflow.dag_settings.force_incomplete:
            self._asked("Cancel", {"jobs": [name]})
            return False
        with self._lock:
            self._waiting[name] = None
        if self._look_at(name) not in (None, "failed", "blocked", "cancelled"):
            self.logger.info(f"Job {name} of Fairway goes on, and is waited for.")
            self.report_job_submission(SubmittedJobInfo(job, external_jobid=name))
            return True
        with self._lock:
            self._waiting.pop(name, None)
            self._endings.pop(name, None)
        return False

    def _message(self, job: JobExecutorInterface) -> Dict[str, Any]:
        self._count += 1
        text = self.format_job_exec(job)
        payload: Dict[str, Any] = {"environment": {k: str(v) for k, v in self.envvars().items()}}
        words = shlex.split(text)
        python = self.get_python_executable()
        folder = self.workflow.workdir_init if self.workflow.storage_settings.assume_common_workdir else "."
        if words[:3] == [python, "-m", "snakemake"]:
            payload["argv"] = [python, "-c", _BECOME, str(folder), *words[3:]]
            if not self._settings.cold:
                payload["worker"] = f"{python} fairway:python snakemake_executor_plugin_fairway.warm?"
        else:  # something is to be done before
            payload["shell"] = f"cd {shlex.quote(str(folder))} && {text}"
        return {
            "name": f"{self._name(job)}-{_mark(job)}-{self._prefix}-{self._count}",
            "step": re.sub(r"[^A-Za-z0-9_.-]+", "_", job.name).strip("._-")[:100] or "job",
            "payload": payload,
            "needs": self._needs(job),
            "retry": {"attempts": 1},  # Snakemake itself tries again what has failed
        }

    def _name(self, job: JobExecutorInterface) -> str:
        if job.is_group():
            return f"group-{job.name}"
        values = [f"{k}={v}" for k, v in sorted(job.wildcards_dict.items())]
        return re.sub(r"[^A-Za-z0-9_.=,+-]+", "_", ",".join([job.name, *values]))[:200]

    def _needs(self, job: JobExecutorInterface) -> Dict[str, Any]:
        resources = job.resources
        needs: Dict[str, Any] = {"milliCpus": 1000 * max(1, int(resources.get("_cores", job.threads)))}
        memory = resources.get("mem_mb")
        if _whole(memory):
            needs["memoryBytes"] = (int(memory) + _OWN_MEMORY) * 10**6
        runtime = resources.get("runtime")
        if _whole(runtime):
            needs["time"] = f"{int(runtime) * 60}s"
        for name in ("gpu", "gpus"):
            if _whole(resources.get(name)) and int(resources[name]) > 0:
                needs["countable"] = {"gpu": int(resources[name])}
        return needs

    async def check_active_jobs(
        self, active_jobs: List[SubmittedJobInfo]
    ) -> AsyncGenerator[SubmittedJobInfo, None]:
        if self._failure is not None:
            raise WorkflowError(f"Fairway: {self._failure}")
        for info in active_jobs:
            with self._lock:
                summary = self._endings.pop(info.external_jobid, None)
                if summary is not None:
                    self._waiting.pop(info.external_jobid, None)
            if summary is None:
                yield info
            elif summary["state"] == "done":
                self.report_job_success(info)
            else:
                self._failed(info, summary)

    def _failed(self, info: SubmittedJobInfo, summary: Dict[str, Any]) -> None:
        logs = []
        try:
            text = self._client.logs(info.external_jobid)
            path = os.path.abspath(os.path.join(".snakemake", "fairway_logs", info.external_jobid + ".log"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            logs.append(path)
        except (FairwayError, OSError):
            pass  # it printed nothing
        self.report_job_error(info, msg=f"Fairway: {summary.get('reason', summary['state'])}\n", aux_logs=logs)

    async def sleep(self) -> None:
        """Wait until a job has ended, or was submitted and had ended before."""
        if self._news is None:
            self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            if self._endings or self._stop.is_set() or self._failure is not None:
                self._news.set()
        try:
            await asyncio.wait_for(self._news.wait(), 1.0)
        except asyncio.TimeoutError:
            return
        self._news.clear()
        await asyncio.sleep(_TOGETHER)

    def cancel_jobs(self, active_jobs: List[SubmittedJobInfo]) -> None:
        with self._lock:
            names = list(self._waiting)
        for name in names:
            try:
                self._client.call("Cancel", {"jobs": [name]})
            except FairwayError:
                pass  # it has ended, or the server has

    def shutdown(self) -> None:
        already = self._stop.is_set()
        self._stop.set()
        self._wake()
        super().shutdown()
        if already:
            return
        if self._ours:
            try:
                self._client.call("CloseInput")
                if self._server is not None:
                    self._server.wait(30)
            except Exception:
                pass  # it has ended, or is ended now
        if self._server is not None:
            self._server.stop()
        self._client.close()


_OWN_MEMORY = 200  # MB for Snakemake itself, which runs in the job
_TOGETHER = 0.005  # seconds for which jobs that end are gathered


def _mark(job: JobExecutorInterface) -> str:
    """What tells a job from others of a workflow: what it makes, or else what it is."""
    made = sorted(str(f) for f in job.output) or [str(spec) for spec in job.get_target_spec()]
    return hashlib.sha256("\0".join(made).encode()).hexdigest()[:16]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
