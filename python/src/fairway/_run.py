"""Runs: how they stand, and what they have made."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Union

from ._connection import Client, Message
from ._display import display
from ._errors import FairwayError
from ._program import Server, program

Record = Dict[str, Any]

_JOB: Record = {
    "id": 0, "name": "", "step": "", "state": "", "attempts": 0, "reason": "", "pilot": "", "submitted": None,
    "started": None, "ended": None, "reused": False, "host": "", "notes": [], "run": 0,
}
_COUNTS = frozenset(
    "size total waiting ready running done reused failed blocked cancelled queued jobs attempts bytes_staged bytes_cached "
    "bytes_written cache_hits cache_misses pilots published_count pilots_idle pilots_busy pilots_inactive bytes".split()
)
_PAGE = 1000


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


class Run:
    """A run of a folder, or one of a server that lasts: while it goes on, and when it has ended.

    at is the folder, or that of the server or its service file; number is that of the run there.
    """

    def __init__(self, at: Union[str, os.PathLike] = ".", number: int = 0, server: Optional[Server] = None) -> None:
        self.client = Client(at, number)
        self.number = number
        self._server = server
        self._last: Record = {}

    def __repr__(self) -> str:
        return f"Run({self.client.location!r}{f', {self.number}' if self.number else ''})"

    def jobs(self, state: Union[str, List[str], None] = None, step: Union[str, List[str], None] = None) -> List[Record]:
        """All jobs, or those of states and steps, one record each: pandas.DataFrame(run.jobs())."""
        request: Message = {"limit": _PAGE}
        for key, value in (("states", state), ("steps", step)):
            if value:
                request[key] = [value] if isinstance(value, str) else list(value)
        found: List[Record] = []
        while True:
            answer = self._ask("ListJobs", request, ["jobs", "--limit", str(_PAGE), *_flags(request)])
            found += [{**_JOB, **job} for job in answer.get("jobs", [])]
            if not answer.get("more"):
                return found
            request["after"] = found[-1]["id"]

    def explain(self, job: Union[str, int]) -> List[str]:
        """Why a job does not run, one reason a line."""
        answer = self._ask("Explain", {"job": str(job)}, ["explain", str(job)])
        return list(answer.get("lines", []))

    def logs(self, job: Union[str, int]) -> str:
        """What the last attempt of a job printed."""
        try:
            return self.client.logs(str(job))
        except FairwayError as e:
            if e.code != "unavailable":
                raise
        return _program(self.client.location, ["logs", str(job)])

    @property
    def results(self) -> List[Record]:
        """The files that are results: lfn, size, path and the job that wrote it, one record each."""
        answer = self._ask("ListFiles", {"limit": 1_000_000}, ["files", "--limit", "1000000"])
        found = []
        for file in answer.get("files", []):
            for version in file.get("versions", []):
                if version.get("newest") and version.get("published"):
                    found.append({
                        "lfn": file["lfn"], "size": version.get("size", 0), "path": self._result(file["lfn"]),
                        "job": version.get("writer", {}).get("name", ""),
                    })
        return found

    def _result(self, lfn: str) -> str:
        place = self.progress().get("summary", {}).get("results", "") or os.path.join(self.client.location, "results")
        return f"{place.rstrip('/')}/{lfn}" if "://" in place else os.path.join(self.client.location, place, lfn)

    def progress(self) -> Record:
        """How the run stands: steps with their counts, a summary, problems; the last known when it has ended."""
        try:
            for report in self.client.stream("Progress"):
                self._last = _plain(report)
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
                    self._last = _plain(report)
                    yield self._last
            except FairwayError as e:
                if e.code != "unavailable":
                    raise
            if not had or not self.client.standby or self._last.get("ended"):
                return

    def wait(self, progress: bool = False) -> "Run":
        """Wait for the end. With progress, show a line that changes, also in notebooks.

        The error is a FairwayError that says what failed.
        """
        show = display() if progress else None
        for report in self.follow():
            if show is not None:
                show(_line(report))
        code = self._server.wait() if self._server is not None else 0
        last = self._last
        if code or last.get("ended") and not last.get("succeeded"):
            problems = "; ".join(last.get("problems", []))
            raise FairwayError("failed", problems or (self._server.output() if self._server is not None else "the run failed"))
        return self

    def stop(self, now: bool = False) -> None:
        """End the run when what runs has ended, or at once."""
        self.client.call("Stop", {"drain": not now})

    def cancel(self, *jobs: Union[str, int]) -> None:
        """End jobs."""
        self.client.call("Cancel", {"jobs": [str(job) for job in jobs]})

    def retry(self, *jobs: Union[str, int]) -> None:
        """Let jobs run again; without any, all that failed."""
        names = [str(job) for job in jobs]
        try:
            self.client.call("Retry", {"jobs": names})
        except FairwayError as e:
            if e.code != "unavailable" or not self.client.local:
                raise
            _program(self.client.location, ["retry", *names])  # which the next run begins with

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows = "".join(
            f"<tr><td>{step.get('step', '')}</td><td>{step.get('done', 0)}/{step.get('total', 0)}</td>"
            f"<td>{step.get('running', 0)}</td><td>{step.get('failed', 0)}</td></tr>"
            for step in self.progress().get("steps", [])
        )
        return f"<table><tr><th>step</th><th>done</th><th>running</th><th>failed</th></tr>{rows}</table>"

    def _ask(self, name: str, request: Message, words: List[str]) -> Record:
        """Ask the server or, where none runs, the records of the folder by the program."""
        try:
            return _plain(self.client.call(name, request))
        except FairwayError as e:
            if e.code != "unavailable" or not self.client.local:
                raise
        if "after" in request:
            words = [*words, "--after", str(request["after"])]
        return json.loads(_program(self.client.location, [*words, "--json"]))


class Service:
    """A server that lasts (`fairway serve`): its folder, or a copy of its service file."""

    def __init__(self, at: Union[str, os.PathLike, None] = None) -> None:
        self.client = Client(at)

    def submit(
        self, workflow: Union[str, bytes, Any], *, folder: Optional[str] = None, key: str = "", results: str = "",
        parameters: Optional[Mapping[str, Any]] = None, uploads: Optional[Mapping[str, bytes]] = None,
    ) -> Run:
        """Begin a run of a workflow: a Workflow, or the text of a file. uploads are contents by path."""
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

    def runs(self) -> List[Record]:
        """The runs that are kept, the newest first, one record each."""
        return [_plain(run) for run in self.client.call("ListRuns", {"limit": 1_000_000}).get("runs", [])]


def _flags(request: Message) -> List[str]:
    return [word for key, flag in (("states", "--state"), ("steps", "--step"))
            for value in request.get(key, []) for word in (flag, value)]


def _program(folder: str, words: List[str]) -> str:
    done = subprocess.run([program(), "-C", folder, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        if "--json" in words and done.stdout:
            answer = json.loads(done.stdout)
            said = "; ".join(filter(None, (answer.get("error"), answer.get("hint"))))
        raise FairwayError("unavailable", said)
    return done.stdout.decode("utf-8", "replace")


def _line(report: Record) -> str:
    steps = report.get("steps", [])
    counts = {k: sum(step.get(k, 0) for step in steps) for k in ("total", "done", "running", "failed")}
    line = f"{report.get('workflow', '')}: {counts['done']}/{counts['total']} jobs, {counts['running']} running"
    return line + (f", {counts['failed']} failed" if counts["failed"] else "")
