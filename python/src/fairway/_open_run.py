"""OpenRun: a run to which a program submits jobs, and of whose ends it hears."""

from __future__ import annotations

import base64
import hashlib
import itertools
import logging
import os
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ._connection import Client, Message, Path
from ._errors import FairwayError
from ._program import Server

_API = 1  # the version that a server has at least: it is asked for the ends of some jobs
ENDED = ("done", "failed", "blocked", "cancelled")  # states of jobs

_log = logging.getLogger("fairway")
_MAX_BATCH = 1000  # jobs of one call of Submit
_PAGE = 1000  # jobs of one call of ListJobs or Endings
_PART = 4 << 20  # bytes of one call of Upload
_MAX_RESTARTS = 3  # of an upload whose parts the server has lost
_AWAY_TIME = 120.0  # seconds for which a server that does not answer is asked again
_AWAY_PAUSE = 0.1
_OPEN_TIME = 60.0  # seconds for a run that others end to be gone
_END_TIME = 30.0  # seconds for a server to end when its run has
_REFUSED = ("invalid_argument", "already_exists", "resource_exhausted")  # what one job can be the reason of


def _nobody(_: object) -> None:
    """Is told where nobody is to be."""


class OpenRun:
    """A run to which this program submits jobs. Any thread may use it.

    In a folder where nothing runs it starts a server, which goes on until this program closes its
    OpenRun or ends, however it ends, and so has the last other one that uses the run. A run that is
    open there is used, and kept open while it is. A server that is killed is started again by the
    program that has started it.

    Args:
        folder: of the run; what was done there before is known. Default: one that goes with the run.
        server: the folder of a server that lasts, or a copy of its service file: then the run is one
            of that server.
        run: the number of an open run of that server. Default: a new one.
        name: of a new run, for people.
        pilots: on this machine. Default: those of `fairway open`.
        site: sites to run on.
        options: further words for `fairway open`.
        has: what jobs of this program may need of this machine, as name=number.
        on_end: is called in a thread of the run with jobs that have ended, as messages EndedJob of
            docs/api.md: of those that were submitted or awaited here, each once.
        on_failure: is called in that thread, once, with the error by which the run cannot go on.

    Attributes:
        client: asks the server.
        lasting: whether it is one of a server that lasts.
        owned: whether this program has opened the run, which ends with it.
        ignored: a sentence where pilots, site and options change nothing, since the run is open already.
    """

    def __init__(
        self, folder: Path | None = None, *, server: Path | None = None, run: int = 0, name: str = "python",
        pilots: int | None = None, site: str | Iterable[str] | None = None, options: Iterable[str] = (), has: str = "",
        on_end: Callable[[list[Message]], None] = _nobody,
        on_failure: Callable[[BaseException], None] = _nobody,
    ) -> None:
        sites = [site] if isinstance(site, str) else list(site or ())
        more = [*(["--pilots", str(pilots)] if pilots else []), *(w for s in sites for w in ("--site", s)), *options]
        self._command = ["open", "--name", name, "--watch-inputs", "none", "--until-stdin-ends",
                         *(["--has", has] if has else []), *more]
        self._on_end, self._on_failure = on_end, on_failure
        self._temporary: str | None = None
        self.lasting = server is not None
        self._uploads: dict[str, str] = {}  # paths at a server of what was uploaded, by name
        self._starting = threading.Lock()  # guards the next one; held while a server starts
        self._server: Server | None = None  # that this program has started last
        self._held: Iterator[Any] | None = None  # a stream of ends by which a run of others is kept open
        self._lock = threading.Lock()  # guards what follows; never held while something is awaited
        self._awaited: dict[str, int] = {}  # numbers of jobs whose end is awaited, by name; 0: not known
        self.failure: BaseException | None = None
        self._listening = threading.Event()
        self._closing = threading.Event()
        self.ignored = ""
        if server is not None:
            self.client = Client(server, run)
            self.owned = not run
            self._answers()
            if self.owned:
                text = base64.b64encode(f"workflow: {name}\nopen: true\n".encode()).decode()
                self.client.run = self.client.call("SubmitWorkflow", {"workflow": text, "file": name})["run"]
        else:
            if folder is None:
                folder = self._temporary = tempfile.mkdtemp(prefix="fairway-")
            os.makedirs(folder, exist_ok=True)
            self.client = Client(folder)
            try:
                self.owned = self._join()
            except BaseException:  # also Ctrl-C: nobody else knows of it yet
                self._leave()
                raise
        if more and (not self.owned or self._server is None):
            self.ignored = (
                f"the run in {self.client.location} is open already: {' '.join(more)} changes nothing there. "
                f"To have it, end that run with `fairway -C {self.client.location} close`")
        self._listener = threading.Thread(target=self._listen, name="fairway-endings", daemon=True)
        self._listener.start()

    @property
    def calls(self) -> str:
        """The folder of long calls, beside the state of the run, which no job may read."""
        return os.path.join(self.client.location, ".fairway-calls")

    def __repr__(self) -> str:
        return f"OpenRun({self.client.location!r}{f', run={self.client.run}' if self.client.run else ''})"

    def __enter__(self) -> OpenRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(cancel=kind is not None)

    def call(self, name: str, request: Message | None = None) -> Message:
        """A call of the API that is repeated while the server is away, which is started again if it is ours.

        Args:
            name: the name of the call.
            request: its message.

        Raises:
            FairwayError: the server refused, or was away for 120 seconds.
        """
        deadline = time.monotonic() + _AWAY_TIME
        while True:
            try:
                return self.client.call(name, request)  # type: ignore[no-any-return]
            except FairwayError as e:
                if e.code != "unavailable" or time.monotonic() > deadline or self._closing.is_set():
                    raise
                self._revive(e)

    def submit(self, jobs: Sequence[Message]) -> dict[str, FairwayError]:
        """Submit jobs, which are messages SubmittedJob of docs/api.md with names. Their ends come to on_end.

        Returns:
            Why jobs were refused, by their names.

        Raises:
            FairwayError: the server is away for good, or the run takes no jobs.
        """
        self._listening.wait()
        if self.failure is not None:
            raise self.failure
        refused: dict[str, FairwayError] = {}
        with self._lock:
            self._awaited.update((job["name"], 0) for job in jobs)
        for begin in range(0, len(jobs), _MAX_BATCH):
            self._add(jobs[begin: begin + _MAX_BATCH], refused)
        return refused

    def watch(self, job: str) -> str | None:
        """Have the end of a job come to on_end that another program has submitted.

        Returns:
            Its state; None: there is no such job.
        """
        self._listening.wait()
        with self._lock:
            self._awaited[job] = 0
        state = self._state(job)
        if state is None:
            self.forget([job])
        elif state in ENDED:
            self._look([job])
        return state

    def forget(self, jobs: Iterable[str]) -> None:
        """Tell nobody of the ends of jobs."""
        with self._lock:
            for job in jobs:
                self._awaited.pop(job, None)

    def cancel(self, jobs: Iterable[str]) -> None:
        """End jobs. Those that there are not, or that have ended, are passed over."""
        names = list(jobs)
        try:
            self._cancel_some(names)
        except FairwayError as e:
            if e.code == "unavailable":
                raise
            for name in names if len(names) > 1 else ():  # one that is not known hinders the others
                self.cancel([name])

    def _cancel_some(self, names: list[str]) -> None:
        if names:
            self.call("Cancel", {"jobs": names})

    def jobs(self, states: Iterable[str], run: int = 0) -> Iterable[Message]:
        """The summaries of jobs, as messages JobSummary.

        Args:
            states: those that jobs are in.
            run: the number of another run of the same server.
        """
        request: Message = {"states": list(states), "limit": _PAGE, **({"run": run} if run else {})}
        while True:
            answer = self.call("ListJobs", request)
            yield from answer.get("jobs", [])
            if not answer.get("more"):
                return
            request["after"] = answer["jobs"][-1]["id"]

    def store(self, data: bytes | memoryview) -> Message:
        """Keep bytes that jobs read.

        Returns:
            What stands in the reads of a job: the name is that of the contents.

        Raises:
            ValueError: they are too many.
        """
        name = "call-" + hashlib.sha256(data).hexdigest()
        path = self._uploaded(name, data) if self.lasting else self._written(name, data)
        return {"lfn": "files/" + name, "file": path}

    def close(self, *, cancel: bool = False) -> None:
        """Leave the run, and end it and its server unless others use it.

        Args:
            cancel: end what still runs; else that is waited for.
        """
        if self._closing.is_set():
            return
        self._closing.set()
        try:
            if self.lasting and self.owned and self.failure is None:
                self.client.call("Stop" if cancel else "CloseInput")
        except FairwayError as e:
            _log.debug("the run is not closed: %s", e)
        finally:
            self._leave(cancel)
            self.client.close()
            if self._listener is not threading.current_thread():
                self._listener.join(_END_TIME)
            self.client.close()
            self._on_end = self._on_failure = _nobody  # who was told holds this run, and may go now

    # The server.

    def _join(self) -> bool:
        """Use the run that is open in the folder, or open one, which it returns."""
        deadline = time.monotonic() + _OPEN_TIME
        while True:
            try:
                if self._answers():
                    self._held = self.client.stream("Endings", {"hold": True})
                    next(self._held)
                    return False
                self._start()
                return True
            except FairwayError as e:  # another program was first, or is about to end the run
                here = e.code == "aborted" or (e.code == "unavailable" and (self._held or self.client.answers()))
                if not here or time.monotonic() > deadline:
                    raise
                self._held = None
            time.sleep(_AWAY_PAUSE)

    def _answers(self) -> bool:
        """Whether a server answers. One that would pass over what is asked is refused: its answer never comes."""
        from . import __version__

        found = self.client.answers()
        if found and self.client.api is not None and self.client.api < _API:
            raise FairwayError("unimplemented", f"the server in {self.client.location} is of an older Fairway than "
                                                f"fairway-jobs {__version__}, and does not understand it: start one "
                                                "of this version, or install the fairway-jobs of that one")
        return found

    def _start(self) -> None:
        """Start a server in the folder, which ends with this program."""
        first = ["--temporary"] if self._temporary and self._server is None else []
        server = Server(self.client.location, [*self._command, *first], subprocess.PIPE)
        try:
            server.wait_open(self.client)
            self._answers()
            if server.process.poll() is not None:  # it is that of another program that answers
                raise FairwayError("unavailable", f"fairway has ended: {server.output()}")
        except BaseException:
            server.stop()
            raise
        self._server = server

    def _revive(self, why: FairwayError) -> None:
        """Start the server again if it was killed."""
        with self._starting:
            if not os.path.exists(self.client.location):
                raise why  # no server comes back there
            server = self._server
            gone = server is not None and server.process.poll() is not None
            if server is not None and gone and not self._closing.is_set() and not self.client.answers():
                _log.warning("the server in %s was killed, and is started again", self.client.location)
                self._start()
                server.stop()
                return
        time.sleep(_AWAY_PAUSE)

    def _leave(self, cancel: bool = True) -> None:
        """End the run and its server, if this program has opened it and no other one keeps it open."""
        server, self._server = self._server, None
        held = 0
        try:
            if server is not None and self.failure is None:
                held = int(self.client.call("CloseInput", {"leave": True}).get("held", 0))
            if cancel and (held or server is None) and not self.lasting:
                with self._lock:
                    awaited = list(self._awaited)
                self._cancel_some(awaited)
            if server is not None and not held and not cancel and self.failure is None:
                server.wait(_END_TIME)
        except Exception as e:
            _log.debug("the run is not closed: %s", e)
        if server is not None and held:
            server.leave()
        elif server is not None:
            server.stop()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        else:
            try:
                os.rmdir(self.calls)
            except OSError:
                pass  # there is none, or others use it

    # What has ended.

    def _listen(self) -> None:
        """Hear of jobs that have ended."""
        deadline = time.monotonic() + _AWAY_TIME
        hold = {"hold": True} if not self.owned and not self.lasting else {}
        while not self._closing.is_set():
            try:
                missed = self._listening.is_set()
                held, self._held = self._held, None
                for report in itertools.chain([{}], held) if held else self.client.stream("Endings", hold):
                    deadline = time.monotonic() + _AWAY_TIME
                    if missed:
                        self._look_back()
                    missed = False
                    self._listening.set()
                    self._tell(report.get("jobs", []))
                time.sleep(_AWAY_PAUSE)
            except BaseException as e:
                if self._closing.is_set():
                    break
                try:
                    if not isinstance(e, FairwayError) or e.code != "unavailable" or time.monotonic() > deadline:
                        raise
                    self._revive(e)
                except BaseException as failure:
                    self.failure = failure
                    self._on_failure(failure)
                    break
        self._listening.set()

    def _look_back(self) -> None:
        """Hear of jobs that have ended while nobody listened."""
        with self._lock:
            awaited = dict(self._awaited)
        newest = max(awaited, key=lambda name: awaited[name], default="")
        if newest and awaited[newest] and self._state(newest) is None:
            raise FairwayError("data_loss", f"the records of the run in {self.client.location} were removed: its "
                                            f"server knows no job {newest} any more, which it had taken")
        self._look(list(awaited))

    def _look(self, jobs: Sequence[str]) -> None:
        """Hear of those of jobs that have ended, many in one call."""
        for begin in range(0, len(jobs), _PAGE):
            for report in itertools.islice(self.client.stream("Endings", {"jobs": jobs[begin: begin + _PAGE]}), 1):
                self._tell(report.get("jobs", []))

    def _state(self, job: str) -> str | None:
        """That of a job, None where there is none."""
        try:
            state: str = self.client.call("ShowJob", {"job": job})["summary"]["state"]
        except FairwayError as e:
            if e.code != "not_found":
                raise
            return None
        return state

    def _tell(self, ended: list[Message]) -> None:
        with self._lock:
            ended = [e for e in ended if self._awaited.pop(e["summary"]["name"], None) is not None]
        if ended:
            self._on_end(ended)

    # Jobs.

    def _add(self, batch: Sequence[Message], refused: dict[str, FairwayError]) -> None:
        """Submit jobs. One that is refused does not hinder the others."""
        try:
            answer = self.call("Submit", {"jobs": list(batch)})
        except FairwayError as e:
            if e.code not in _REFUSED:
                raise
            if len(batch) == 1:
                self.forget([batch[0]["name"]])
                refused[batch[0]["name"]] = e
                return
            middle = len(batch) // 2
            self._add(batch[:middle], refused)
            self._add(batch[middle:], refused)
            return
        refs = answer.get("jobs", [])
        with self._lock:
            self._awaited.update((ref["name"], ref["id"]) for ref in refs if ref["name"] in self._awaited)
        cancelled = [ref["name"] for ref in refs if ref.get("known") and ref["state"] == "cancelled"]
        if cancelled:
            self.call("Retry", {"jobs": cancelled})
        self._look([ref["name"] for ref in refs
                    if ref.get("known") and ref["state"] in ENDED and ref["name"] not in cancelled])

    def _written(self, name: str, data: bytes | memoryview) -> str:
        """The path of a file beside the run, which holds data."""
        folder = self.calls
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            part = f"{path}.{uuid.uuid4().hex[:8]}"
            with open(part, "wb") as f:
                f.write(data)
            os.rename(part, path)
        return path

    def _uploaded(self, name: str, data: bytes | memoryview) -> str:
        """The path at a server of a file that holds data."""
        path, offset, restarts = self._uploads.get(name), 0, 0
        while path is None:
            part = data[offset: offset + _PART]
            try:
                answer = self.call("Upload", {
                    "name": name, "offset": offset, "content": base64.b64encode(part).decode(),
                    "last": offset + len(part) == len(data),
                })
            except FairwayError as e:
                if e.code == "resource_exhausted":
                    raise ValueError(f"a call of {len(data)} bytes is too long: {e}") from e
                restarts += 1
                if e.code != "out_of_range" or restarts > _MAX_RESTARTS:
                    raise
                offset = 0  # the server has lost the parts before
                continue
            path = answer.get("file")
            offset = int(answer["size"])
        self._uploads[name] = path
        return path
