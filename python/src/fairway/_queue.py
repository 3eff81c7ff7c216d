"""The calls of an executor: queued, submitted as jobs, and given their results."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import io
import itertools
import os
import pickle
import platform
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import IO, Any

import fairway_call

from . import _batching, _calls
from ._batching import Batching
from ._channels import Channel, Channels
from ._connection import Message
from ._errors import FairwayError, JobFailed
from ._future import Future
from ._open_run import OpenRun

_MAX_JOBS = 1000  # that are submitted at a time
_MAX_BYTES = 8 << 20  # of calls in them
_LOOK = 0.05  # seconds after which it is looked whether calls have waited for so long
_RUNNING = 0.1  # seconds for which it is believed which jobs run
_MAX_SHARED = 4 << 20  # bytes of a call that shares a job
CALL = "call"  # what a pilot has of each call that it may run at a time
_CHANNEL_TIME = 2.0  # seconds from its begin after which a job gets no further calls: others wait for its place
_IDLE_TIME = 0.05  # seconds for which a job without calls is kept
_MAX_WORDS = 5  # kinds of workers that an executor has, by the modules that they import

_Unpack = Callable[[list[Any]], Any]


@dataclasses.dataclass(frozen=True)
class Options:
    """How calls are made."""

    needs: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # a message Resources
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    retries: int = 0
    priority: int = 0
    together: bool = True
    remember: bool = False
    begin: Callable[[], Any] | None = None  # is called in each process before its first call

    @property
    def channel_time(self) -> float:
        """Seconds from the begin of a job after which it gets no further calls: those have the time that each needs."""
        return min(_CHANNEL_TIME, float(str(self.needs.get("time", "inf")).rstrip("s")) / 30)


class Work:
    """Calls that were submitted together, until they have ended."""

    __slots__ = ("alone", "call", "encoded", "futures", "job", "name", "options", "since")

    def __init__(self, name: str, call: str, encoded: _calls.Encoded, options: Options) -> None:
        self.name = self.job = name
        self.call = call  # the name without a number
        self.encoded = encoded
        self.options = options
        self.futures: dict[Future[Any], _Unpack] = {}  # by which results become theirs
        shared = options.together and not options.retries and not options.remember
        most = _calls.INLINE if encoded.path is None else _MAX_SHARED
        self.alone = not shared or bool(encoded.reads) or encoded.size > most  # it shares no job
        self.since = time.monotonic()

    def goes_with(self, other: Work) -> bool:
        """Whether one job can make both."""
        return not (self.alone or other.alone) and (
            self.encoded.header == other.encoded.header and self.options == other.options)


class Unsent:
    """Calls that wait and may share jobs: those of a higher priority first. The lock of the queue guards it."""

    def __init__(self) -> None:
        self._works: dict[int, collections.deque[Work]] = {}  # by priority

    def __len__(self) -> int:
        return sum(map(len, self._works.values()))

    def append(self, work: Work, first: bool = False) -> None:
        """Add a call as the last, or the first, of its priority."""
        works = self._works.setdefault(work.options.priority, collections.deque())
        (works.appendleft if first else works.append)(work)

    def next(self) -> Work | None:
        """The next call, which stays. Those that were cancelled go."""
        while self._works:
            work = self._works[max(self._works)][0]
            if work.futures:
                return work
            work.encoded.discard()
            self.take()
        return None

    def take(self) -> None:
        """Remove the next call."""
        priority = max(self._works)
        self._works[priority].popleft()
        if not self._works[priority]:
            del self._works[priority]


@dataclasses.dataclass
class Job:
    """A job that was submitted. The lock of the queue guards it."""

    works: list[Work]  # that it makes now
    last: Work  # of those that it was given, which further ones have to go with
    batch: int = 0  # how often it was given further ones
    channel: Channel | None = None


class Queue:
    """The calls of an executor. Any thread of its process may use it.

    Args:
        open_run: makes the run, with on_end and on_failure.
        workers: calls that can run at a time.
        python: the interpreter of calls; modules: what its workers import besides what calls need.
        elsewhere: calls wait until one without data has shown that this interpreter, which may be that of another
            machine, is of the same version as this one.
        alone: a run that it opens has workers on this machine alone, for nobody else.
        here: its pilots are on this machine, and count calls.
    """

    def __init__(
        self, open_run: Callable[..., OpenRun], workers: int, python: str, modules: Iterable[str],
        elsewhere: bool = False, alone: bool = False, here: bool = False,
    ) -> None:
        self.process = os.getpid()
        self.workers = workers
        self._python = python
        self._elsewhere = elsewhere  # and not compared yet
        self._asking = threading.Lock()  # guards it: nobody's call is before the one that compares
        self._modules = {"fairway_call?", "cloudpickle?", *modules}
        self._growths = 0  # of self._modules
        self._text = _calls.bootstrap()
        self._prefix = uuid.uuid4().hex[:12]
        self._count = itertools.count(1)
        self._lock = threading.Lock()  # guards what follows; never held while something is awaited
        self._changed = threading.Condition(self._lock)
        self._pending: dict[str, Work] = {}
        self._unsent = Unsent()
        self._alone: collections.deque[Work] = collections.deque()  # that share none
        self._sent: dict[str, Job] = {}  # by name
        self._places: collections.Counter[int] = collections.Counter()  # of them, by priority
        self._idle: dict[str, Job] = {}  # of them, those that could be given further calls
        self._unwanted: list[str] = []  # jobs that are to be cancelled
        self._cancelled: collections.Counter[str] = collections.Counter()  # of remembered calls
        self._batching = Batching(workers)
        self._running: tuple[float, frozenset[str]] = (0.0, frozenset())  # when that was asked, and which
        self._first: Future[Any] | None = None  # compares versions; others wait
        self.done = 0  # calls that have ended
        self.closed = False
        self._broken: BaseException | None = None
        self._ending = False
        self._stop = False
        self.ended = threading.Event()
        self.run = open_run(on_end=self._on_end, on_failure=self._fail)
        self.folder = self.run.calls if not self.run.lasting else None
        # Of a run that was open it is not known whether its pilots count calls.
        self._counts = here and not self.run.ignored and workers < (os.cpu_count() or 1)
        # Of another run it is not known how many can run at a time, nor of other machines.
        self._batching.further = alone and self.run.owned and hasattr(socket, "SO_PEERCRED")
        self._channels = Channels(self._connected, self._answered) if self._batching.further else None
        self._sender = threading.Thread(target=self._send, name="fairway-submit", daemon=True)
        self._sender.start()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"an executor is that of its process, {self.process}, and goes to no other one, nor to a call: "
                        "make one there")

    # What executors use.

    def submit(self, calls: Sequence[_calls.Call], options: Options, unpack: _Unpack) -> Future[Any]:
        """Queue calls, which are one job."""
        self._refuse_closed()
        if self._elsewhere:
            self._compare(options)
        return self._add(calls, options, unpack)

    def _add(self, calls: Sequence[_calls.Call], options: Options, unpack: _Unpack) -> Future[Any]:
        try:
            encoded = _calls.Encoded(calls, self.folder, options.begin)
        except Exception as e:
            return _failed(Future[Any](self, ""), e)
        call = f"call-{self._prefix}-{next(self._count)}"
        if options.remember:
            call = self._remembered(calls, encoded, options)
        with self._changed:
            try:
                self._refuse_closed()
            except BaseException:
                encoded.discard()
                raise
            name = f"{call}-{self._cancelled[call]}" if call in self._cancelled else call
            work, future = self._pending.get(name), Future[Any](self, name)
            if work is None:
                work = self._pending[name] = Work(name, call, encoded, options)
                (self._alone if work.alone else self._unsent).append(work)
                self._changed.notify_all()
            else:  # the same call, with remember
                encoded.discard()
                future.job = work.job
            work.futures[future] = unpack
        return future

    def _compare(self, options: Options) -> None:
        """Ask the interpreter of calls for its version, once, in a call that any version can read."""
        with self._asking:
            if self._elsewhere:
                self.done -= 1  # it is no call of the user's
                ask = dataclasses.replace(options, together=False, remember=False, begin=None)
                self._first = self._add([(platform.python_version, (), {})], ask, lambda results: results[0])
                self._first.add_done_callback(self._compared)
                self._elsewhere = False

    def _compared(self, first: concurrent.futures.Future[Any]) -> None:
        error = None if first.cancelled() else first.exception()
        if error is not None and fairway_call.OTHER_PYTHON in str(error):
            self._fail(error)
        with self._changed:
            self._changed.notify_all()

    def cancel(self, future: Future[Any]) -> bool:
        """Forget a future, and end its job if nobody else waits for that. It returns False where it has ended."""
        with self._changed:
            work = self._pending.get(future._name)
            if work is None or work.futures.pop(future, None) is None:
                return False
            if not work.futures:
                self._forget(work)
                job = self._sent.get(work.job)
                if job is not None and work in job.works and not any(w.futures for w in job.works):
                    self._unwanted.append(work.job)
                    self._forget_job(work.job)
        return True

    def runs(self, future: Future[Any]) -> bool:
        """Whether the job of a future runs."""
        with self._lock:
            if future.job not in self._sent:
                return False
            asked, jobs = self._running
        now = time.monotonic()
        if now > asked + _RUNNING:
            try:
                jobs = frozenset(job["name"] for job in self.run.jobs(["running"]))
            except FairwayError:
                return False
            with self._lock:
                self._running = now, jobs
        return future.job in jobs

    def waiting(self) -> list[Future[Any]]:
        """The futures that have not ended."""
        with self._lock:
            return [future for work in self._pending.values() for future in work.futures]

    def close(self) -> None:
        """Take no more calls."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def end(self, now: bool) -> None:
        """Wait for the calls, or end them now, and end the run. Only the first caller does so."""
        with self._changed:
            first, self._ending = not self._ending, True
            if not first and not now:
                return
            self._changed.wait_for(lambda: now or not self._pending)
            self._stop = True
            self._changed.notify_all()
        if not now:
            self._sender.join()
        if self._channels is not None:
            self._channels.close()
        self.run.close(cancel=now)
        self._sender.join()
        self._channels = None  # which leads back here: a queue that has ended goes without the garbage collector
        self.ended.set()

    def _refuse_closed(self) -> None:
        if self._broken is not None:
            raise concurrent.futures.BrokenExecutor(str(self._broken)) from self._broken
        if self.closed:
            raise RuntimeError("cannot schedule new futures after shutdown")

    # Jobs.

    def _remembered(self, calls: Sequence[_calls.Call], encoded: _calls.Encoded, options: Options) -> str:
        from . import _identity

        more = (encoded.header.decode(), self._python, sys.version, str(fairway_call.CHECKSUM),
                *(f"{name}={value}" for name, value in sorted(options.variables.items())))
        begin: list[_calls.Call] = [(options.begin, (), {})] if options.begin is not None else []
        return "call-" + _identity.identity([*begin, *calls], more)

    def _forget(self, work: Work) -> None:
        """The caller holds the lock."""
        self._pending.pop(work.name, None)
        if work.options.remember and work.job in self._sent:
            self._cancelled[work.call] += 1  # its job ends, and the next one is another
        self._changed.notify_all()

    def _send(self) -> None:
        """Submit what is queued, many jobs at a time, give calls to jobs, and cancel what nobody waits for."""
        while True:
            with self._changed:
                while True:
                    further, wait = self._further()
                    jobs = self._taken()
                    if further or jobs or self._unwanted:
                        break
                    if self._stop:
                        return
                    self._changed.wait(wait or (_LOOK if self._unsent else None))
                unwanted, self._unwanted = self._unwanted, []
            try:
                for channel, works in further:
                    channel.send(pickle.dumps([work.encoded.content() for work in works]) if works else b"")
                self.run.forget(unwanted)
                self.run.cancel(unwanted)
                self._submit(jobs)
            except BaseException as e:
                if self._stop:
                    return
                self._fail(e)
                return

    def _further(self) -> tuple[list[tuple[Channel, list[Work]]], float | None]:
        """Take calls for jobs that have made theirs; of none they end. And seconds after which to look again."""
        further, wait, now = [], None, time.monotonic()
        for job in list(self._idle.values()):
            channel, works = job.channel, list[Work]()
            assert channel is not None
            options = job.last.options
            before = sum(count for priority, count in self._places.items() if priority >= options.priority)
            others_wait = before > self.workers or now > channel.began + options.channel_time
            if not others_wait:
                share = self._batching.share(job.last.encoded.step, len(self._unsent))
                works = self._batch(job.last, _MAX_BYTES, share.takes)
            if works:
                self._give_to(channel.job, job, works)
                job.batch += 1
            elif not (others_wait or self._unsent or self._stop) and now < channel.answered + _IDLE_TIME:
                wait = _IDLE_TIME
                continue
            del self._idle[channel.job]
            further.append((channel, works))
        return further, wait

    def _batch(self, like: Work, size: int, takes: Callable[[str], bool]) -> list[Work]:
        """Take calls that are next, go with another and are of steps that are taken. The caller holds the lock.

        Args:
            like: the other one.
            size: their bytes at most.
            takes: whether one of a step is taken as well.
        """
        batch: list[Work] = []
        while (work := self._unsent.next()) is not None:
            if work.encoded.size > size or not work.goes_with(like) or not takes(work.encoded.step):
                break
            batch.append(work)
            size -= work.encoded.size
            self._unsent.take()
        return batch

    def _give_to(self, name: str, job: Job, works: list[Work]) -> None:
        """Note that a job makes calls. The caller holds the lock."""
        job.works, job.last = works, works[-1]
        for work in works:
            work.job = name
            for future in work.futures:
                future.job = name

    def _taken(self) -> list[tuple[str, list[Work]]]:
        """Take calls that are to be submitted now, as jobs by name. The caller holds the lock."""
        jobs: list[tuple[str, list[Work]]] = []
        held: list[Work] = []
        size, queued, now = 0, len(self._unsent), time.monotonic()
        first = self._first if self._first is not None and not self._first.done() else None
        while len(jobs) < _MAX_JOBS and size < _MAX_BYTES:
            work = self._alone[0] if self._alone else self._unsent.next()
            if work is None or (first is not None and first not in work.futures):
                break
            if not work.alone and self._batching.waits(now):
                break
            if work.alone:
                self._alone.popleft()
            else:
                self._unsent.take()
            if not work.futures:  # it was cancelled
                work.encoded.discard()
                continue
            step = work.encoded.step
            count = 1 if work.alone else self._batching.count(step, work.since, queued, now)
            if count == 0:
                held.append(work)
                continue
            alike = iter([step] * (count - 1))
            batch = [work, *self._batch(work, _calls.INLINE - work.encoded.size, partial(_is_next, alike))]
            name = work.name if len(batch) == 1 else f"calls-{self._prefix}-{next(self._count)}"
            job = self._sent[name] = Job(batch, work)
            self._give_to(name, job, batch)
            self._batching.shared += not work.alone
            self._places[work.options.priority] += 1
            jobs.append((name, batch))
            size += min(sum(one.encoded.size for one in batch), _calls.INLINE)
        for work in reversed(held):
            self._unsent.append(work, first=True)
        return jobs

    def _submit(self, jobs: list[tuple[str, list[Work]]]) -> None:
        messages = []
        for job, batch in jobs:
            try:
                messages.append(self._message(job, batch))
            except (ValueError, OSError) as e:
                self._over(job)
                self._resolve(batch[0], error=e)
        for job, error in (self.run.submit(messages) if messages else {}).items():
            works = self._sent[job].works if job in self._sent else []
            if error.code == "already_exists" and works and works[0].options.remember:
                self._take_up(job)
                continue
            self._over(job)
            for work in works:
                self._resolve(work, error=JobFailed(str(error)))

    def _take_up(self, job: str) -> None:
        """Have the result of the same call that another program has made, in other bytes."""
        state = self.run.call("ShowJob", {"job": job})["summary"]["state"]
        if state in ("failed", "blocked", "cancelled"):
            self.run.call("Retry", {"jobs": [job]})
        self.run.watch(job)

    def _message(self, job: str, works: list[Work]) -> Message:
        """The job of a call, or of several short ones."""
        folder = f"{_calls.FOLDER}/{job}"
        first, options = works[0].encoded, works[0].options
        reads = dict(first.reads)
        channel = self._channels.name if self._channels is not None else ""
        shared = ["", ""] if works[0].alone else [str(_batching.UNTIL), channel]
        words = [folder, "{}.{}".format(*sys.version_info), *shared]
        if first.path is not None:
            stored = {"lfn": "files/" + os.path.basename(first.path), "file": first.path}
        elif first.size > _calls.INLINE:
            stored = self.run.store(first.data)
        else:
            stored = {}
        if stored:
            reads[stored["lfn"]] = stored
            words.append("@" + stored["lfn"])
        else:
            words += [work.encoded.argument() for work in works]
        if works[0].alone:
            first.data = b""  # it is needed no more
        message: Message = {
            "name": job,
            "step": first.step,
            "payload": {
                "argv": [self._python, "-c", self._text, *words],
                "worker": self._worker(first, options),
                "environment": dict(options.variables),
            },
            "reads": list(reads.values()),
            "writes": [{"lfn": folder + "/*", "pattern": True, "unpublished": True}],
            "retry": {"attempts": options.retries + 1},
            "priority": options.priority,
        }
        needs = dict(options.needs)
        if self._counts:
            needs["countable"] = {**needs.get("countable", {}), CALL: 1}
        if needs:
            message["needs"] = needs
        return message

    def _worker(self, encoded: _calls.Encoded, options: Options) -> str:
        """The words of the worker that begins a call: with the modules that calls were seen to need."""
        missing = {name + "?" for name in encoded.modules} - self._modules
        modules = self._modules | missing
        if missing and not options.remember and self._growths < _MAX_WORDS:
            self._growths += 1
            self._modules = modules
        elif not options.remember:  # a remembered call has the same words in each program
            modules = self._modules
        return " ".join([self._python, "fairway:python", *sorted(modules)])

    # Ends.

    def _over(self, name: str) -> Job | None:
        """A job that was sent, and has ended."""
        with self._changed:
            return self._forget_job(name)

    def _forget_job(self, name: str) -> Job | None:
        """The caller holds the lock."""
        self._idle.pop(name, None)
        job = self._sent.pop(name, None)
        if job is not None:
            if job.channel is not None:
                job.channel.close()
            self._places[job.last.options.priority] -= 1
            self._batching.shared -= not job.last.alone
            self._changed.notify_all()
        return job

    def _on_end(self, ended: list[Message]) -> None:
        for one in ended:
            job = self._over(one["summary"]["name"])
            if job is None:
                continue
            try:
                self._give(one["summary"], one.get("writes", []), job)
            except BaseException as e:
                for work in job.works:
                    self._resolve(work, error=e)

    def _give(self, summary: Message, writes: list[Message], job: Job) -> None:
        """Give calls of a job that has ended their results or errors."""
        made, works = _calls.Made(summary["name"], writes, self.run.client), job.works
        # The process may have ended by one of several, or by what those before have left in it.
        again = not job.last.alone and (len(works) > 1 or job.batch > 0)
        if works and summary["state"] == "done":
            try:
                with made.open() as f:
                    self._give_results(f, made, job.batch, works)
            except JobFailed:
                if not again:
                    raise
                self._resubmit(works, alone=True)
        elif works and again:
            self._resubmit(works, alone=True)
        elif works and summary["state"] == "cancelled":
            self._resolve(works[0], error=concurrent.futures.CancelledError())
        elif works:
            self._resolve(works[0], error=_calls.raised(self.run.client, summary))
        if self.run.owned and not job.last.options.remember:
            made.remove_value()

    def _give_results(self, f: IO[bytes], made: _calls.Made, batch: int, works: list[Work]) -> None:
        """Give each call of a job its result or error. What the job has left is submitted again."""
        told, index = _calls.index_of(f)
        if told != batch:  # they are of calls that have theirs; the job ended before it had these
            index = []
        for work, (at, error, seconds) in zip(works, index, strict=False):
            self._learn(work.encoded.step, seconds)
            try:
                if error is not None:
                    log = _calls.log_of(self.run.client, made.job)
                    self._resolve(work, error=_calls.unpickled(error, log))
                    continue
                for future, unpack in list(work.futures.items()):
                    future.seconds = seconds
                    f.seek(at)
                    _set(future, partial(_load, f, made, unpack))
                self._resolve(work)
            except BaseException as e:
                self._resolve(work, error=e)
        self._resubmit(works[len(index):], alone=False)

    def _connected(self, channel: Channel) -> bool:
        with self._lock:
            job = self._sent.get(channel.job)
            if job is None or job.channel is not None:  # what it was given went with its first attempt
                return False
            job.channel = channel
            return True

    def _answered(self, channel: Channel, answer: bytes) -> None:
        """Take results of a job that goes on."""
        with self._changed:
            job = self._sent.get(channel.job)
            if job is None or job.channel is not channel or channel.job in self._idle:
                return
            works, job.works = job.works, []
            channel.answered = self._batching.answered = time.monotonic()
            self._idle[channel.job] = job
            self._changed.notify_all()
        try:
            self._give_results(io.BytesIO(answer), _calls.Made(channel.job, [], self.run.client), job.batch, works)
        except BaseException as e:
            for work in works:
                self._resolve(work, error=e)

    def _resubmit(self, works: list[Work], alone: bool) -> None:
        """Have calls of a job be submitted once more, before others."""
        with self._changed:
            for work in reversed(works):
                work.alone = work.alone or alone
                if work.alone:
                    self._alone.appendleft(work)
                else:
                    self._unsent.append(work, first=True)
            self._changed.notify_all()

    def _learn(self, step: str, seconds: float) -> None:
        with self._changed:
            if self._batching.learn(step, seconds):
                self._changed.notify_all()

    def _resolve(self, work: Work, error: BaseException | None = None) -> None:
        """Calls have ended: who still waits for them has the error."""
        with self._changed:
            if self._pending.get(work.name) is work:
                del self._pending[work.name]
            futures, work.futures = list(work.futures), {}
            self.done += 1
        for future in futures:
            if isinstance(error, concurrent.futures.CancelledError):
                future.set_cancelled()
            elif error is not None:
                _set(future, None, error)
        work.encoded.discard()
        with self._changed:
            if not self._pending:
                self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        """The run cannot go on: all that waits fails."""
        with self._changed:
            self._broken = error
            waiting = list(self._pending.values())
            self._stop = True
            self._changed.notify_all()
        for work in waiting:
            broken = concurrent.futures.BrokenExecutor(str(error))
            broken.__cause__ = error
            self._resolve(work, error=broken)


def _is_next(steps: Iterator[str], step: str) -> bool:
    return next(steps, "") == step


def _load(f: IO[bytes], made: _calls.Made, unpack: _Unpack) -> Any:
    return unpack(made.load(f))


def _failed(future: Future[Any], error: BaseException) -> Future[Any]:
    future.set_exception(error)
    return future


def _set(future: Future[Any], make: Callable[[], Any] | None, error: BaseException | None = None) -> None:
    """Give a future what make returns, or raises, or an error. One that was cancelled meanwhile stays so."""
    value = None
    if make is not None:
        try:
            value = make()
        except BaseException as e:
            error = e
    try:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
    except concurrent.futures.InvalidStateError:
        pass
