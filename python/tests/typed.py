"""What type checkers know of a program that uses the client: `make lint-python` reads it, and nobody runs it.

An ignored error that is none is one.
"""

from __future__ import annotations

from collections.abc import Iterator

import fairway
from fairway.messages import ListJobsResponse


def half(number: int) -> float:
    return number / 2


def times(word: str, number: int) -> str:
    return word * number


def program(executor: fairway.Executor, client: fairway.Client) -> None:
    one: fairway.Future[float] = executor.submit(half, 3)
    executor.submit(half, "3")  # type: ignore[arg-type]
    executor.submit(half)  # type: ignore[call-arg]
    seconds: float | None = one.seconds
    halves: Iterator[float] = executor.map(half, [1, 2], chunksize=2)
    words: Iterator[str] = executor.map(times, ["a", "b"], range(2))
    executor.map(half, ["a", "b"])  # type: ignore[arg-type]
    executor.map(times, [1], ["a"])  # type: ignore[arg-type]
    executor.map(times, ["a"])  # type: ignore[arg-type]
    jobs: ListJobsResponse = client.call("ListJobs", {"states": ["failed"], "limit": 10})
    names: list[str] = [job["name"] for job in jobs["jobs"]]
    client.call("ListJobs")["nothing"]  # type: ignore[typeddict-item]
    print(one, seconds, halves, words, names)
