"""The errors of this package, of which FairwayError is the root."""

from __future__ import annotations

from typing import Any


class FairwayError(Exception):
    """What a server refused, or why it did not answer.

    Attributes:
        code: one of docs/api.md, such as "not_found"; "unavailable" where no server answers.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, str(self)), self.__dict__


class JobFailed(FairwayError):
    """A call did not end, and raised no exception either: it was killed, or went over a limit.

    Attributes:
        reason: why, in one sentence.
        log: what the call printed.
    """

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__("failed", reason)
        self.reason = reason
        self.log = log

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.log), self.__dict__


class RemoteTraceback(Exception):
    """The cause of an exception that a call raised: its traceback at the place where it was raised."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])
