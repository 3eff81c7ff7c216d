"""Which calls are one job: decisions that know neither threads nor clocks."""

from __future__ import annotations

from dataclasses import dataclass, field

TOGETHER = 0.05  # seconds that short calls of one job should take
WORTH = 0.01  # seconds that they should take at least, if there are as many
UNTIL = 0.2  # seconds of a job of several calls after which it begins no further one
MAX_TOGETHER = 100  # calls of such a job
BATCH = 0.2  # seconds that a batch of joblib should take
FIRST = 0.05  # seconds for which those are waited for that take no time, of jobs that can be given further calls
HOLD = 2.0  # seconds for which calls wait to learn how long the first of their kind take
GATHER = 0.25  # seconds for which short calls wait for others


@dataclass
class Batching:
    """How long calls take, and how many are under way. Times are seconds of one clock.

    Args:
        workers: calls that can run at a time.
        further: jobs can be given further calls.

    Attributes:
        shared: jobs under way, of calls that may share one.
        answered: when one of them has given results, and could be given further calls.
    """

    workers: int
    further: bool = False
    shared: int = 0
    answered: float = float("-inf")
    _seconds: dict[str, float] = field(default_factory=dict)  # that a call takes, by its step
    _first: dict[str, tuple[float, int]] = field(default_factory=dict)  # when the first were sent, and how many

    def waits(self, now: float) -> bool:
        """Whether calls wait for jobs that there are: one for each worker, which take further ones."""
        return self.further and self.shared >= self.workers and now < self.answered + HOLD

    def count(self, step: str, since: float, queued: int, now: float) -> int:
        """How many calls of a step are to be one job; 0: they are to wait.

        They wait until it is known how long the first ones take, HOLD seconds at most; and, while there
        are jobs for all workers, until they are many enough for a job, GATHER seconds at most.

        Args:
            step: that of the calls.
            since: when the first of them was queued.
            queued: how many calls are, of all steps.
            now: the time.
        """
        seconds = self._seconds.get(step)
        if seconds is None:
            began, sent = self._first.get(step, (now, 0))
            at_first = self.workers if self.further and now < began + FIRST else 2 * self.workers
            if sent >= at_first and now < began + HOLD:
                return 0
            self._first[step] = (began, sent + 1)
            return 1
        full = _within(TOGETHER, seconds)
        enough = self.shared >= 2 * self.workers
        if enough and queued < full and now < since + GATHER:
            return 0
        return full if enough else min(full, max(_within(WORTH, seconds), queued // (2 * self.workers)))

    def share(self, step: str, queued: int) -> Share:
        """What a job is given that has made its calls.

        Args:
            step: that of the calls.
            queued: how many calls are.
        """
        return Share(step, self._seconds, queued // (2 * self.workers))

    def learn(self, step: str, seconds: float) -> bool:
        """Note how long a call has taken. It returns whether that was not known at all."""
        before = self._seconds.get(step)
        self._seconds[step] = seconds if before is None else 0.8 * before + 0.2 * seconds
        self._first.pop(step, None)
        return before is None


@dataclass
class Share:
    """Calls that a job is given that has made its own.

    Args:
        step: that of its own. Those of others are given if they are known to be short.
        seconds: that a call takes, by its step.
        worth: how many are given even if they take long enough for a trip.
    """

    step: str
    seconds: dict[str, float]
    worth: int
    _count: int = 0
    _taken: float = 0.0

    def takes(self, step: str) -> bool:
        """Whether it has a call of a step as well, which is noted."""
        seconds = self.seconds.get(step, TOGETHER)
        taken = self._taken + seconds
        if step != self.step and seconds >= TOGETHER:
            return False
        long = taken > (1 + 1e-9) * (TOGETHER if self._count < self.worth else WORTH)
        if self._count and (long or self._count >= MAX_TOGETHER):
            return False
        self._count, self._taken = self._count + 1, taken
        return True


def _within(most: float, seconds: float) -> int:
    """How many calls take at most so many seconds, at least one."""
    return max(1, min(int(most / max(seconds, 1e-6)), MAX_TOGETHER))


def following(size: int, seconds: float) -> int:
    """How many calls the batch of joblib after one has: it takes BATCH seconds if they are alike.

    It has at most twice as many, since those to come may take longer, or MAX_TOGETHER of TOGETHER in all.

    Args:
        size: calls of the batch.
        seconds: that they took.
    """
    rate = size / max(seconds, 1e-6)
    return max(1, min(int(BATCH * rate), max(2 * size, min(int(TOGETHER * rate), MAX_TOGETHER))))
