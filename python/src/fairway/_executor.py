"""Executor: calls of Python functions as jobs."""

from __future__ import annotations

import atexit
import base64
import collections
import concurrent.futures
import hashlib
import itertools
import os
import pickle
import re
import shutil
import sys
import tempfile
import threading
import time
import uuid
import zlib
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple, Union

import fairway_call as _call
from ._connection import Client, Message
from ._errors import FairwayError, JobFailed, RemoteTraceback
from ._file import File
from ._program import Server
from ._resources import resources

_INLINE = 48_000  # bytes of a call that stand in its job; a larger one is a file
_PART = 4 << 20  # bytes of one call of Upload
_MAX_BATCH = 1000  # jobs of one call of Submit
_MAX_BATCH_BYTES = 8 << 20  # of calls in them
_TOGETHER = 0.05  # seconds that short calls of one job should take
_WORTH = 0.01  # seconds that they should take at least, if there are as many
_UNTIL = 0.2  # seconds of a job of several calls after which it begins no further one
_MAX_TOGETHER = 100  # calls of such a job
_HOLD = 2.0  # seconds for which calls wait to learn how long the first of their kind take
_GATHER = 0.25  # seconds for which short calls wait for others
_LOOK = 0.05  # seconds after which it is looked whether calls have waited for so long
_CALLS = "calls"  # the folder of what calls make
_ENDED = ("done", "failed", "blocked", "cancelled")
_AGAIN_PAUSE = 0.1
_AWAY_TIME = 120.0  # seconds for which a server that does not answer is asked again


class _Call:
    """What was submitted, until it has ended."""

    __slots__ = ("name", "step", "paths", "data", "reads", "future", "unpack", "alone", "since")

    def __init__(self, name: str, step: str, paths: bytes, data: bytes, reads: Dict[str, Message], future: "_Future",
                 unpack: Callable[[List[Any]], Any], alone: bool) -> None:
        self.name = name
        self.step = step
        self.paths = paths  # of modules
        self.data = data
        self.reads = reads
        self.future = future
        self.unpack = unpack
        self.alone = alone  # it is never in a job with others
        self.since = time.monotonic()


class _Future(concurrent.futures.Future):
    """The result of a call; cancel also ends a call that runs."""

    def __init__(self, executor: "Executor", name: str) -> None:
        super().__init__()
        self._executor = executor
        self.name = name
        self.job = name  # the name of its job, for `fairway show`; short calls may share one

    def cancel(self) -> bool:
        if self.done():
            return self.cancelled()
        self._executor._cancel(self)
        return super().cancel()


def _bootstrap() -> str:
    """The text that a job runs. Short, since each job has it."""
    with open(_call.__file__, "rb") as f:
        packed = base64.b64encode(zlib.compress(f.read(), 9)).decode()
    return (
        "import sys\ntry:\n from fairway_call import main\nexcept ImportError:\n import base64,zlib\n"
        f" exec(zlib.decompress(base64.b64decode('{packed}')))\nmain(sys.argv[1:])"
    )


class Executor(concurrent.futures.Executor):
    """A concurrent.futures.Executor whose calls are jobs of Fairway.

    folder: of the run; calls that were made there before are kept. Without it the run has a folder
    of its own, which goes with the executor. If a run is open there, calls are added to it.
    server: the folder of a server that lasts, or a copy of its service file: then the run is one of
    that server. run: an open run of it.
    max_workers: local pilots (default: one for each processor). site: sites to run on.
    needs: of each call: cpus, memory, disk, time, or what a site names.
    retries: how often a call is made again that failed. (A call that is lost with its node is.)
    together: calls of a function that take less than 50 ms may share jobs, and so processes.
    remember: a call with the same function and arguments as an earlier one has its result.
    python: the interpreter of the calls; modules: what their workers import once.
    options: further words for `fairway open`.
    """

    def __init__(
        self,
        max_workers: Optional[int] = None,
        *,
        folder: Union[str, os.PathLike, None] = None,
        server: Union[str, os.PathLike, None] = None,
        run: int = 0,
        site: Union[str, Iterable[str], None] = None,
        needs: Optional[Mapping[str, Any]] = None,
        retries: int = 0,
        together: bool = True,
        remember: bool = False,
        python: Optional[str] = None,
        modules: Iterable[str] = (),
        options: Iterable[str] = (),
    ) -> None:
        self._max_workers = max_workers or os.cpu_count() or 1
        self._needs = resources(needs or {})
        self._retries = retries
        self._together = together and not retries and not remember
        self._remember = remember
        self._python = python or (sys.executable if server is None else "python3")
        names = ["fairway_call?", "cloudpickle?", *modules]
        self._worker = " ".join([self._python, "fairway:python", *names])
        self._text = _bootstrap()
        self._prefix = uuid.uuid4().hex[:12]
        self._count = itertools.count(1)
        self._temporary: Optional[str] = None
        self._server: Optional[Server] = None
        self._lasting = server is not None
        self._uploads: Dict[str, str] = {}  # paths at a server of what was uploaded, by name
        self._words: List[str] = ["open", "--pilots", str(self._max_workers), "--watch-inputs", "none"]
        for name in [site] if isinstance(site, str) else site or ():
            self._words += ["--site", name]
        self._words += options
        self._lock = threading.Lock()  # guards what follows
        self._pending: Dict[str, _Call] = {}
        self._unsent: Deque[_Call] = collections.deque()  # some may be cancelled
        self._sent: Dict[str, List[_Call]] = {}  # by the name of their job
        self._unwanted: Set[str] = set()  # calls that were cancelled, perhaps before they were submitted
        self._seconds: Dict[str, float] = {}  # that a call takes, by its step
        self._shared = 0  # jobs that are sent, of calls that may share one
        self._first: Dict[str, List[float]] = {}  # of steps of which that is not known: when one was sent, how many
        self._closed = False
        self._broken: Optional[BaseException] = None
        self._idle = threading.Condition(self._lock)
        self._news = threading.Condition(self._lock)  # for who sends
        if server is not None:
            self.client = Client(server, run)
            self._owns = run == 0
            if self._owns:
                text = base64.b64encode(b"workflow: python\nopen: true\n").decode()
                self.client.run = self.client.call("SubmitWorkflow", {"workflow": text, "file": "python"})["run"]
        else:
            if folder is None:
                folder = self._temporary = tempfile.mkdtemp(prefix="fairway-")
            os.makedirs(folder, exist_ok=True)
            self.client = Client(folder)
            self._owns = not _answers(self.client)
            self._open()
        self._listening = threading.Event()
        self._stop = threading.Event()
        self._listener = threading.Thread(target=self._listen, name="fairway-endings", daemon=True)
        self._listener.start()
        self._sender = threading.Thread(target=self._send, name="fairway-submit", daemon=True)
        self._sender.start()
        self._process = os.getpid()
        _open_executors.add(self)  # until it has ended

    # What callers use.

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "concurrent.futures.Future[Any]":
        """Call fn as a job. File arguments are brought to it; exceptions come back as they were raised."""
        return self._submit([(fn, args, kwargs)], lambda results: results[0])

    def map(
        self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: Optional[float] = None, chunksize: int = 1
    ) -> Iterator[Any]:
        """As that of concurrent.futures: chunksize calls are one job."""
        if chunksize < 1:
            raise ValueError("chunksize must be at least 1")
        deadline = None if timeout is None else time.monotonic() + timeout
        arguments, futures = zip(*iterables), []
        for chunk in iter(lambda: list(itertools.islice(arguments, chunksize)), []):
            futures.append(self._submit([(fn, args, {}) for args in chunk], lambda results: results))

        def results() -> Iterator[Any]:
            try:
                while futures:
                    left = None if deadline is None else deadline - time.monotonic()
                    yield from futures.pop(0).result(left)
            finally:
                for future in futures:
                    future.cancel()

        return results()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls and, with wait, wait for those that there are and end the run."""
        with self._lock:
            self._closed = True
            left = [call.future for call in self._pending.values()]
        if cancel_futures:
            for future in left:
                future.cancel()
        if wait:
            with self._idle:
                self._idle.wait_for(lambda: not self._pending)
            self._end()
        else:
            threading.Thread(target=self.shutdown, name="fairway-shutdown").start()

    # How it works.

    def _open(self) -> None:
        if not self._owns:
            return
        try:
            self._server = Server(self.client.at, self._words)
            self._server.wait_open(self.client)
        except BaseException:  # also Ctrl-C: nobody else knows of it yet
            if self._server is not None:
                self._server.stop()
            self._remove_temporary()
            raise

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _end(self) -> None:
        if self._stop.is_set():
            return
        self._stop.set()
        _open_executors.discard(self)
        with self._news:
            self._news.notify_all()
        self._sender.join()
        try:
            if self._owns and self._broken is None:
                self.client.call("CloseInput")
            if self._server is not None:
                try:
                    self._server.wait(30)
                except Exception:
                    pass
        except FairwayError:
            pass
        finally:
            if self._server is not None:
                self._server.stop()
            if not self._owns:
                self.client.close()  # the stream goes on
            self._listener.join(_AWAY_TIME)
            self.client.close()
            self._remove_temporary()

    def _submit(self, calls: List[Tuple[Any, Any, Any]], unpack: Callable[[List[Any]], Any]) -> _Future:
        reads: Dict[str, Message] = {}

        def named(o: Any) -> Optional[str]:
            if not isinstance(o, File):
                return None
            if o.lfn:
                reads[o.lfn] = {"lfn": o.lfn}
                return o.lfn
            path = o.path if "://" in o.path else os.path.abspath(o.path)
            name = "files/" + hashlib.sha256(path.encode()).hexdigest()[:12] + "/" + os.path.basename(path)
            reads[name] = {"lfn": name, "file": path}
            return name

        paths = "\0".join(path for path in sys.path if path).encode().replace(b"\n", b"") + b"\n"
        _refuse_main(calls)
        data = _call.dumps(calls, named)
        if self._remember:
            name = "call-" + hashlib.sha256(paths + data + repr(sorted(reads.items())).encode()).hexdigest()[:24]
        else:
            name = f"call-{self._prefix}-{next(self._count)}"
        future = _Future(self, name)
        alone = not self._together or bool(reads) or len(paths) + len(data) > _INLINE // 4
        call = _Call(name, _step(calls[0][0]), paths, data, reads, future, unpack, alone)
        with self._news:
            if self._broken is not None:
                raise concurrent.futures.BrokenExecutor(str(self._broken)) from self._broken
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if name in self._pending:  # the same call, with remember
                self._pending[name].future.add_done_callback(lambda done: _copy(done, future))
                return future
            self._pending[name] = call
            self._unsent.append(call)
            self._news.notify()
        return future

    def _messages(self, jobs: List[Tuple[str, List[_Call]]]) -> List[Message]:
        """The jobs of calls. A call that can be none fails."""
        messages = []
        for job, calls in jobs:
            try:
                messages.append(self._message(job, calls))
            except (ValueError, OSError) as e:
                self._is_over(job)
                self._resolve(calls[0], error=e)
                continue
            if calls[0].alone:
                calls[0].data = b""  # it is needed no more
        return messages

    def _message(self, job: str, calls: List[_Call]) -> Message:
        """The job of a call, or of several short ones."""
        folder = f"{_CALLS}/{job}"
        reads = dict(calls[0].reads)
        words = [folder]
        if len(calls) == 1:
            words.append(self._given(calls[0].paths + calls[0].data, reads))
        else:
            words.append(str(_UNTIL))
            for k, call in enumerate(calls):
                words.append(base64.b64encode((b"\n" if k else call.paths) + call.data).decode())
        message: Message = {
            "name": job,
            "step": calls[0].step,
            "payload": {"argv": [self._python, "-c", self._text, *words], "worker": self._worker},
            "reads": list(reads.values()),
            "writes": [{"lfn": folder + "/*", "pattern": True, "unpublished": True}],
            "retry": {"attempts": self._retries + 1},
        }
        if self._needs:
            message["needs"] = self._needs
        return message

    def _given(self, data: bytes, reads: Dict[str, Message]) -> str:
        """How a job gets its call: in a word of its command or, if it is long, by a file."""
        if len(data) <= _INLINE:
            return base64.b64encode(data).decode()
        name = "call-" + hashlib.sha256(data).hexdigest()
        path = self._uploaded(name, data) if self._lasting else self._written(name, data)
        reads["files/" + name] = {"lfn": "files/" + name, "file": path}
        return "@files/" + name

    def _written(self, name: str, data: bytes) -> str:
        """The path of a file beside the run, which holds data."""
        folder = os.path.join(self.client.at, ".fairway", "calls")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            with open(path + self._prefix, "wb") as f:
                f.write(data)
            os.rename(path + self._prefix, path)
        return path

    def _uploaded(self, name: str, data: bytes) -> str:
        """The path at a server of a file that holds data."""
        path = self._uploads.get(name)
        at = 0
        while path is None:
            part = data[at: at + _PART]
            try:
                answer = self._asked("Upload", {
                    "name": name, "offset": at, "content": base64.b64encode(part).decode(), "last": at + len(part) == len(data),
                })
            except FairwayError as e:
                if e.code == "resource_exhausted":
                    raise ValueError(f"a call of {len(data)} bytes is too long: {e}") from e
                if e.code != "out_of_range":  # the server has lost the parts before
                    raise
                at = 0
                continue
            path = answer.get("file")
            at = int(answer["size"])
        self._uploads[name] = path
        return path

    def _send(self) -> None:
        """Submit what is queued, many jobs at a time."""
        self._listening.wait()
        while True:
            with self._news:
                while not (jobs := self._taken()):
                    if self._stop.is_set():
                        return
                    self._news.wait(_LOOK if self._unsent else None)
            try:
                self._add(self._messages(jobs))
                with self._lock:
                    late = [job for job, calls in jobs if all(call.name in self._unwanted for call in calls)]
                    self._unwanted.difference_update(call.name for _, calls in jobs for call in calls)
                for job in late:
                    self._end_job(job)
            except BaseException as e:
                self._fail(e)
                return

    def _taken(self) -> List[Tuple[str, List[_Call]]]:
        """Take calls that are to be submitted now, as jobs by name. The caller holds the lock."""
        jobs: List[Tuple[str, List[_Call]]] = []
        held: List[_Call] = []
        size, most = 0, len(self._unsent)
        while self._unsent and len(jobs) < _MAX_BATCH and size < _MAX_BATCH_BYTES:
            call = self._unsent.popleft()
            if call.name not in self._pending:  # it was cancelled
                self._unwanted.discard(call.name)
                continue
            count = self._count_together(call, most)
            if count == 0:
                held.append(call)
                continue
            calls, bytes_ = [call], len(call.paths) + len(call.data)
            while len(calls) < count and self._unsent:
                following = self._unsent[0]
                fits = following.step == call.step and following.paths == call.paths and not following.alone
                if not fits or bytes_ + len(following.data) > _INLINE:
                    break
                self._unsent.popleft()
                if following.name in self._pending:
                    calls.append(following)
                    bytes_ += len(following.data)
            name = call.name if len(calls) == 1 else f"calls-{self._prefix}-{next(self._count)}"
            for one in calls:
                one.future.job = name
            self._sent[name] = calls
            self._shared += not call.alone
            jobs.append((name, calls))
            size += min(bytes_, _INLINE)
        self._unsent.extendleft(reversed(held))
        return jobs

    def _count_together(self, call: _Call, queued: int) -> int:
        """How many calls like this one are to be one job; 0: it is to wait.

        Calls wait until it is known how long the first ones take, _HOLD seconds at most; and, while there
        are jobs for all workers, until they are many enough for a job, _GATHER seconds at most. The caller
        holds the lock.
        """
        if call.alone:
            return 1
        seconds = self._seconds.get(call.step)
        if seconds is not None:
            full = max(1, min(int(_TOGETHER / max(seconds, 1e-6)), _MAX_TOGETHER))
            enough = self._shared >= 2 * self._max_workers
            if enough and queued < full and time.monotonic() < call.since + _GATHER:
                return 0
            worth = int(_WORTH / max(seconds, 1e-6))  # what is less costs more than it computes
            return full if enough else max(1, min(full, max(worth, queued // (2 * self._max_workers))))
        first = self._first.setdefault(call.step, [time.monotonic(), 0])
        if first[1] >= 2 * self._max_workers and time.monotonic() < first[0] + _HOLD:
            return 0
        first[1] += 1
        return 1

    def _learn(self, step: str, seconds: float) -> None:
        """Note how long a call has taken."""
        with self._news:
            before = self._seconds.get(step)
            self._seconds[step] = seconds if before is None else 0.8 * before + 0.2 * seconds
            if before is None:
                self._first.pop(step, None)
                self._news.notify()

    def _is_over(self, job: str) -> Optional[List[_Call]]:
        """The calls of a job that was sent, which has ended."""
        with self._news:
            calls = self._sent.pop(job, None)
            if calls is not None and not calls[0].alone:
                self._shared -= 1
                self._news.notify()
            return calls

    def _again(self, calls: List[_Call], alone: bool) -> None:
        """Have calls of a job be submitted once more, before others."""
        with self._news:
            for call in reversed(calls):
                call.alone = call.alone or alone
                self._unsent.appendleft(call)
            self._news.notify()

    def _add(self, batch: List[Message]) -> None:
        """Submit jobs. One that is refused fails alone."""
        if not batch:
            return
        try:
            answer = self._asked("Submit", {"jobs": batch})
        except FairwayError as e:
            if e.code not in ("invalid_argument", "already_exists", "resource_exhausted"):
                raise
            if len(batch) == 1:
                for call in self._is_over(batch[0]["name"]) or ():
                    self._resolve(call, error=JobFailed(str(e)))
                return
            middle = len(batch) // 2
            self._add(batch[:middle])
            self._add(batch[middle:])
            return
        for ref in answer.get("jobs", []):
            if ref.get("known") and ref["state"] in _ENDED:
                self._look(ref["name"])

    def _asked(self, name: str, request: Message) -> Message:
        """A call that is repeated while the server is away, which is started again if it is ours."""
        deadline = time.monotonic() + _AWAY_TIME
        while True:
            try:
                return self.client.call(name, request)
            except FairwayError as e:
                if e.code != "unavailable" or time.monotonic() > deadline or self._stop.is_set():
                    raise
                self._revive(e)

    def _revive(self, why: FairwayError) -> None:
        """Start our server again if it was killed."""
        with self._lock:
            server = self._server
            if server is not None and server.process.poll() is not None:
                if _answers(self.client):
                    return
                self._server = Server(self.client.at, self._words)
                server.stop()
                self._server.wait_open(self.client)
                return
        time.sleep(_AGAIN_PAUSE)

    def _listen(self) -> None:
        """Hear of calls that have ended."""
        deadline = time.monotonic() + _AWAY_TIME
        while not self._stop.is_set():
            try:
                again = self._listening.is_set()
                for report in self.client.stream("Endings"):
                    deadline = time.monotonic() + _AWAY_TIME
                    if again:
                        again = False
                        with self._lock:
                            waiting = list(self._sent)
                        for job in waiting:
                            self._look(job)
                    self._listening.set()
                    for ended in report.get("jobs", []):
                        self._ended(ended)
                if not self._stop.is_set():
                    time.sleep(_AGAIN_PAUSE)
            except FairwayError as e:
                if self._stop.is_set():
                    return
                if e.code != "unavailable" or time.monotonic() > deadline:
                    self._fail(e)
                    return
                try:
                    self._revive(e)
                except BaseException as e:
                    self._fail(e)
                    return
            except BaseException as e:
                self._fail(e)
                return

    def _look(self, job: str) -> None:
        """Look whether a job has ended."""
        try:
            detail = self.client.call("ShowJob", {"job": job})
        except FairwayError as e:
            if e.code != "not_found":  # it is still to be submitted
                raise
            return
        if detail["summary"]["state"] in _ENDED:
            value = f"{_CALLS}/{job}/value"
            made = [{"lfn": f["lfn"]} for f in detail.get("writes", []) if not f.get("pattern")]
            self._ended({"summary": detail["summary"], "writes": [f for f in made if f["lfn"] == value] and made})

    def _ended(self, ended: Message) -> None:
        job = ended["summary"]["name"]
        calls = self._is_over(job)
        if calls is None:
            return
        try:
            done = ended["summary"]["state"] == "done"
            if len(calls) == 1:
                if done:
                    self._resolve(calls[0], results=self._results(calls[0], job, ended.get("writes", [])))
                else:
                    self._resolve(calls[0], error=self._error(ended["summary"]))
            elif done:
                self._ended_together(job, calls, ended.get("writes", []))
            else:  # one of them has ended all
                self._again(calls, alone=True)
        except BaseException as e:
            for call in calls:
                self._resolve(call, error=e)

    def _ended_together(self, job: str, calls: List[_Call], writes: List[Message]) -> None:
        """Give each call of a job its result or error. What the job has left is submitted again."""
        data, file = self._made(job, writes)
        results = pickle.loads(data)
        for call, (made, error, seconds) in zip(calls, results):
            self._learn(call.step, seconds)
            try:
                if error is None:
                    self._resolve(call, results=_call.loads(made, file))
                    continue
                raised, trace = _call.loads(error, lambda name: None)
                if raised is None:
                    raised = JobFailed(trace.strip().splitlines()[-1])
                raised.__cause__ = RemoteTraceback(trace)
                self._resolve(call, error=_with_log(raised, self._log(job)))
            except BaseException as e:
                self._resolve(call, error=e)
        self._again(calls[len(results):], alone=False)

    def _made(self, job: str, writes: List[Message]) -> Tuple[bytes, Callable[[str], File]]:
        """What a job has told, and the files that it has made, by name."""
        files = {f["lfn"]: f.get("path", "") for f in writes}
        value = f"{_CALLS}/{job}/value"
        if value not in files:
            raise JobFailed(f"the result of {job} is not stored")
        try:
            if not files[value]:
                raise FileNotFoundError(value)
            with open(files[value], "rb") as f:
                data = f.read()
        except OSError:
            data = self.client.read(value)

        def file(name: str) -> File:
            lfn = f"{_CALLS}/{job}/{name}"
            return File(files.get(lfn) or lfn, lfn, self.client)

        return data, file

    def _results(self, call: _Call, job: str, writes: List[Message]) -> List[Any]:
        data, file = self._made(job, writes)
        seconds = re.search(rb"\nseconds=([0-9.]+)$", data[-40:])
        if seconds:
            self._learn(call.step, float(seconds.group(1)))
        return _call.loads(data, file)

    def _log(self, job: str) -> str:
        try:
            return self.client.logs(job)
        except FairwayError:
            return ""  # it printed nothing

    def _error(self, summary: Message) -> BaseException:
        """The exception of a call that failed, as it was raised."""
        if summary["state"] == "cancelled":
            return concurrent.futures.CancelledError()
        log, found = self._log(summary["name"]), None
        match = re.search(r"\n?^%s(\S+)\n" % _call.MARK, log, re.MULTILINE)
        if match:
            log = log[: match.start()] + log[match.end():]
            error, trace = _call.loads(base64.b64decode(match.group(1)), lambda name: None)
            found = error if error is not None else JobFailed(trace.strip().splitlines()[-1], log)
            found.__cause__ = RemoteTraceback(trace)
        return _with_log(found or JobFailed(summary.get("reason", summary["state"]), log), log)

    def _resolve(self, call: _Call, results: Optional[List[Any]] = None, error: Optional[BaseException] = None) -> None:
        with self._lock:
            known = self._pending.pop(call.name, None)
        if known is None:
            return
        future = call.future
        try:
            if isinstance(error, concurrent.futures.CancelledError):
                concurrent.futures.Future.cancel(future)
            if future.set_running_or_notify_cancel():
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(call.unpack(results or []))
        except concurrent.futures.InvalidStateError:
            pass  # it was cancelled meanwhile
        finally:
            with self._idle:
                self._idle.notify_all()

    def _cancel(self, future: _Future) -> None:
        """Forget a call, and end its job if it has one of its own."""
        with self._lock:
            call = self._pending.pop(future.name, None)
            if call is not None:
                self._unwanted.add(call.name)
            alone = call is not None and len(self._sent.get(future.job, ())) == 1
            self._idle.notify_all()
        if alone:
            self._end_job(future.job)

    def _end_job(self, job: str) -> None:
        try:
            self.client.call("Cancel", {"jobs": [job]})
        except FairwayError:
            pass  # it has ended, or is not submitted yet

    def _fail(self, error: BaseException) -> None:
        """The run cannot go on: all that waits fails."""
        with self._lock:
            self._broken = error
            waiting = list(self._pending.values())
        for call in waiting:
            self._resolve(call, error=concurrent.futures.BrokenExecutor(str(error)))
        self._listening.set()


def _answers(client: Client) -> bool:
    try:
        client.call("ListJobs", {"limit": 1})
        return True
    except FairwayError as e:
        return e.code != "unavailable"


def _with_log(error: BaseException, log: str) -> BaseException:
    try:
        error.log = log  # type: ignore[attr-defined]
    except AttributeError:
        pass
    return error


def _refuse_main(calls: List[Tuple[Any, Any, Any]]) -> None:
    """Without cloudpickle, functions of the program itself cannot be found elsewhere."""
    for fn, _, _ in calls:
        if getattr(fn, "__module__", None) == "__main__" and _call.pickler() is pickle.Pickler:
            raise TypeError(
                f"{getattr(fn, '__qualname__', fn)} is a function of the program itself: "
                "put it into a module, or `pip install cloudpickle`"
            )


_open_executors: "Set[Executor]" = set()


def _end_all() -> None:
    """End what the program has left open, when it ends: as with those of concurrent.futures, calls end before."""
    for executor in list(_open_executors):
        if executor._process == os.getpid():  # and not that of a fork
            executor.shutdown()


atexit.register(_end_all)


def _step(fn: Any) -> str:
    """What people see a call under."""
    while hasattr(fn, "func"):  # of functools.partial
        fn = fn.func
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-")[:60] or "call"


def _copy(done: "concurrent.futures.Future[Any]", to: "concurrent.futures.Future[Any]") -> None:
    if not to.set_running_or_notify_cancel():
        return
    error = concurrent.futures.CancelledError() if done.cancelled() else done.exception()
    if error is not None:
        to.set_exception(error)
    else:
        to.set_result(done.result())
