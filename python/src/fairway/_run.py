"""Runs: how they stand, and what they have made."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._connection import Client, Message, Path
from ._display import display
from ._errors import FairwayError
from ._program import Server, program

Record = dict[str, Any]

_JOB: Record = {
    "id": 0, "name": "", "step": "", "state": "", "attempts": 0, "reason": "", "pilot": "", "submitted": None,
    "started": None, "ended": None, "reused": False, "host": "", "notes": [], "run": 0,
}
_COUNTS = {
    "size", "total", "waiting", "ready", "running", "done", "reused", "failed", "blocked", "cancelled",
    "queued", "jobs", "attempts", "bytes_staged", "bytes_cached", "bytes_written", "cache_hits",
    "cache_misses", "pilots", "published_count", "pilots_idle", "pilots_busy", "pilots_inactive", "bytes",
}
_PAGE = 1000
_SHOWN = 100  # runs that a notebook shows


def _plain(value: Any, name: str = "") -> Any:
    """A message of the API with the names of the command line's --json."""
    if isinstance(value, dict):
        found = {re.sub(r"([A-Z])", lambda m: "_" + m.group(1).lower(), k): v for k, v in value.items()}
        return {k: _plain(v, k) for k, v in found.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if name in _COUNTS and isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return int(value)
    return value


def _record(message: Mapping[str, Any]) -> Record:
    plain: Record = _plain(message)
    return plain


class Run:
    """A run of a folder, or one of a server that lasts: while it goes on, and when it has ended.

    Args:
        location: the folder, or that of the server, or its service file.
        number: that of the run there.
        server: that this program has started for it.
    """

    def __init__(self, location: Path = ".", number: int = 0, server: Server | None = None) -> None:
        self.client = Client(location, number)
        self.number = number
        self._server = server
        self._last: Record = {}

    def __repr__(self) -> str:
        return f"Run({self.client.location!r}{f', {self.number}' if self.number else ''})"

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.client.close()  # the run goes on

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self.client.location, self.number)

    def jobs(self, state: str | list[str] | None = None, step: str | list[str] | None = None) -> list[Record]:
        """The jobs, one record each: pandas.DataFrame(run.jobs()).

        Args:
            state: those in these states alone.
            step: those of these steps alone.
        """
        request: Message = {"limit": _PAGE}
        for key, value in (("states", state), ("steps", step)):
            if value:
                request[key] = [value] if isinstance(value, str) else list(value)
        found: list[Record] = []
        while True:
            answer = self._ask("ListJobs", request, ["jobs", "--limit", str(_PAGE), *_flags(request)])
            found += [{**_JOB, **job} for job in answer.get("jobs", [])]
            if not answer.get("more"):
                return found
            request["after"] = found[-1]["id"]

    def explain(self, job: str | int) -> list[str]:
        """Why a job does not run, one reason a line."""
        answer = self._ask("Explain", {"job": str(job)}, ["explain", str(job)])
        return list(answer.get("lines", []))

    def logs(self, job: str | int) -> str:
        """What the last attempt of a job printed."""
        try:
            return self.client.logs(str(job))
        except FairwayError as e:
            if e.code != "unavailable":
                raise
        return _program(self.client.location, ["logs", str(job)])

    @property
    def results(self) -> list[Record]:
        """The files that are results: lfn, size, path and the job that wrote it, one record each."""
        answer = self._ask("ListFiles", {"limit": 1_000_000}, ["files", "--limit", "1000000"])
        folder = self.progress().get("summary", {}).get("results", "") or os.path.join(self.client.location, "results")
        place = folder.rstrip("/") if "://" in folder else os.path.join(self.client.location, folder)
        return [
            {"lfn": file["lfn"], "size": version.get("size", 0), "path": f"{place}/{file['lfn']}",
             "job": version.get("writer", {}).get("name", "")}
            for file in answer.get("files", []) for version in file.get("versions", [])
            if version.get("newest") and version.get("published")
        ]

    def download(self, lfn: str, to: Path) -> None:
        """Write a stored file to a path of this machine, or several into a folder.

        Args:
            lfn: its logical name; one that ends in "/" stands for all beneath it.
            to: the path, or the folder.
        """
        if not lfn.endswith("/"):
            self.client.download(lfn, to)
            return
        for file in self._ask("ListFiles", {"limit": 1_000_000}, ["files", "--limit", "1000000"]).get("files", []):
            if file["lfn"].startswith(lfn):
                path = os.path.join(to, file["lfn"][len(lfn):])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self.client.download(file["lfn"], path)

    def progress(self) -> Record:
        """How the run stands: steps with their counts, a summary, problems; the last known when it has ended."""
        try:
            for report in self.client.stream("Progress"):
                self._last = _record(report)
        except FairwayError as e:
            if e.code != "unavailable":
                raise
        return self._last

    def follow(self) -> Iterator[Record]:
        """progress() whenever it changes, until the run has ended or its server goes and none stands by."""
        while True:
            had = False
            try:
                for report in self.client.stream("Progress", {"follow": True}):
                    had = True
                    self._last = _record(report)
                    yield self._last
            except FairwayError as e:
                if e.code != "unavailable":
                    raise
            if not had or not self.client.standby or self._last.get("ended"):
                return

    def wait(self, progress: bool = False, timeout: float | None = None) -> Run:
        """Wait for the end.

        Args:
            progress: show a line that changes, also in notebooks.
            timeout: seconds, after which TimeoutError is raised; the run goes on.

        Raises:
            FairwayError: the run failed; the message is why.
        """
        show = display() if progress else None
        over = threading.Event()

        def give_up() -> None:
            over.set()
            self.client.close()

        timer = threading.Timer(timeout or 0, give_up)
        if timeout is not None:
            timer.start()
        try:
            for report in self.follow():
                if show is not None:
                    show(_line(report))
        finally:
            timer.cancel()
        if over.is_set() and not self._last.get("ended"):
            raise TimeoutError(f"the run in {self.client.location} has not ended after {timeout:g} seconds")
        code = self._server.wait() if self._server is not None else 0
        last = self._last
        if code or (last.get("ended") and not last.get("succeeded")):
            problems = "; ".join(last.get("problems", []))
            output = self._server.output() if self._server is not None else ""
            raise FairwayError("failed", problems or output or "the run failed")
        return self

    def stop(self, now: bool = False) -> None:
        """End the run when what runs has ended, or at once."""
        self.client.call("Stop", {"drain": not now})

    def cancel(self, *jobs: str | int) -> None:
        """End jobs."""
        self.client.call("Cancel", {"jobs": [str(job) for job in jobs]})

    def retry(self, *jobs: str | int) -> None:
        """Let jobs run again; without any, all that failed."""
        self._begin_with("Retry", {}, ["retry"], jobs)

    def prioritize(self, priority: int, *jobs: str | int) -> None:
        """Give jobs that wait a priority; without any, add it to that of all jobs of the run.

        Args:
            priority: higher ones go first.
            *jobs: names or numbers.
        """
        self._begin_with("Prioritize", {"priority": priority}, ["prioritize", f"--priority={priority}"], jobs)

    def _begin_with(self, call: str, request: dict[str, Any], command: list[str], jobs: tuple[str | int, ...]) -> None:
        """Have the run do something; if it is not under way, the next one begins with it."""
        names = [str(job) for job in jobs]
        try:
            self.client.call(call, {**request, "jobs": names})
        except FairwayError as e:
            if e.code != "unavailable" or not self.client.local:
                raise
            _program(self.client.location, [*command, "--", *names])

    def _repr_html_(self) -> str:
        """What notebooks show."""
        columns = ("step", "done", "total", "running", "failed")
        steps = self.progress().get("steps", [])
        return _table(columns, [[step.get(column, 0) for column in columns] for step in steps])

    def _ask(self, name: str, request: Message, words: list[str]) -> Record:
        """Ask the server or, where none runs, the records of the folder by the program."""
        try:
            return _record(self.client.call(name, request))
        except FairwayError as e:
            if e.code != "unavailable" or not self.client.local:
                raise
        if "after" in request:
            words = [*words, "--after", str(request["after"])]
        found: Record = json.loads(_program(self.client.location, [*words, "--json"]))
        return found


class Service:
    """A server that lasts (`fairway serve`): its folder, or a copy of its service file."""

    def __init__(self, location: Path | None = None) -> None:
        self.client = Client(location)

    def __repr__(self) -> str:
        return f"Service({self.client.location!r})"

    def __enter__(self) -> Service:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.client.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return Service, (self.client.location,)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        columns = ("run", "workflow", "state", "jobs", "done", "failed", "running")
        return _table(columns, [[run.get(column, 0) for column in columns] for run in self.runs()[:_SHOWN]])

    def submit(
        self, workflow: str | bytes | Any, *, folder: str | None = None, key: str = "", results: str = "",
        parameters: Mapping[str, Any] | None = None, uploads: Mapping[str, bytes] | None = None,
    ) -> Run:
        """Begin a run.

        Args:
            workflow: a Workflow, or the text of a file.
            folder: of the machine of the server, that patterns of inputs are relative to.
            key: of the submission: the same key, and the same submission, have the same run.
            results: a folder of that machine, or a URL, for the results.
            parameters: of the workflow.
            uploads: contents of inputs by path, without folder.
        """
        text = workflow if isinstance(workflow, (str, bytes)) else workflow.text()
        request: Message = {
            "workflow": base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode(),
            "parameters": {k: str(v) for k, v in (parameters or {}).items()},
            "uploads": [{"path": k, "content": base64.b64encode(v).decode()} for k, v in (uploads or {}).items()],
            "file": "workflow.yaml", "key": key, "results": results,
        }
        if folder is not None:
            request["folder"] = os.path.abspath(folder)
        return Run(self.client.location, self.client.call("SubmitWorkflow", request)["run"])

    def runs(self) -> list[Record]:
        """The runs that are kept, the newest first, one record each."""
        return [_plain(run) for run in self.client.call("ListRuns", {"limit": 1_000_000}).get("runs", [])]


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{column}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _flags(request: Message) -> list[str]:
    return [word for key, flag in (("states", "--state"), ("steps", "--step"))
            for value in request.get(key, []) for word in (flag, value)]


def _program(folder: str, words: list[str]) -> str:
    done = subprocess.run([program(), "-C", folder, *words], capture_output=True, check=False)
    if done.returncode:
        message = done.stderr.decode("utf-8", "replace").strip()
        if "--json" in words and done.stdout:
            answer = json.loads(done.stdout)
            message = "; ".join(filter(None, (answer.get("error"), answer.get("hint"))))
        raise FairwayError("unavailable", message)
    return done.stdout.decode("utf-8", "replace")


def _line(report: Record) -> str:
    steps = report.get("steps", [])
    counts = {k: sum(step.get(k, 0) for step in steps) for k in ("total", "done", "running", "failed")}
    line = f"{report.get('workflow', '')}: {counts['done']}/{counts['total']} jobs, {counts['running']} running"
    return line + (f", {counts['failed']} failed" if counts["failed"] else "")
