"""Channels: connections of jobs of short calls, which are given further calls without a server."""

from __future__ import annotations

import selectors
import socket
import threading
import time
import uuid
from collections.abc import Callable

import fairway_call


class Channel:
    """The connection of a job.

    Attributes:
        job: its name.
        began: when it was connected.
        answered: when it has given results last.
    """

    def __init__(self, connection: socket.socket, job: str) -> None:
        self._connection = connection
        self.job = job
        self.began = time.monotonic()
        self.answered = self.began

    def send(self, message: bytes) -> None:
        """Send calls. If that fails the job ends, and has not made them."""
        try:
            fairway_call.send(self._connection, message)
        except OSError:
            self.close()

    def close(self) -> None:
        """Send and receive nothing any more. The thread of the channels, which is woken, gives the connection back."""
        _shut(self._connection)


def _shut(connection: socket.socket) -> None:
    """End a connection for all processes that have it, also those that this one has forked."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended


class Channels:
    """Takes the connections of jobs of this machine and this user.

    Args:
        on_connected: is called with a channel; it returns whether its job is known.
        on_answer: is called with a channel, and with what its job sends.
    """

    def __init__(self, on_connected: Callable[[Channel], bool], on_answer: Callable[[Channel, bytes], None]) -> None:
        self.name = "fairway-" + uuid.uuid4().hex
        self._on_connected, self._on_answer = on_connected, on_answer
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind("\0" + self.name)  # no file, so none that is left
        self._listener.listen(socket.SOMAXCONN)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="fairway-channels", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all connections, and so the jobs that wait for calls."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # which wakes the thread
        except OSError:
            return  # it is closed
        if self._thread is not threading.current_thread():
            self._thread.join(fairway_call.PATIENCE)  # a callback of a future may take as long as it likes

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                connection: socket.socket = key.fileobj  # type: ignore[assignment]
                try:
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        self._receive(connection, key.data)
                except OSError:
                    if key.fileobj is self._listener:
                        self._give_back()  # it was closed, or there are no descriptors for more
                        return
                    self._selector.unregister(connection)
                    connection.close()

    def _give_back(self) -> None:
        for key in list(self._selector.get_map().values()):
            connection: socket.socket = key.fileobj  # type: ignore[assignment]
            _shut(connection)
            connection.close()
        self._selector.close()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(fairway_call.PATIENCE)
        if fairway_call.of_this_user(connection):
            self._selector.register(connection, selectors.EVENT_READ)
        else:
            connection.close()

    def _receive(self, connection: socket.socket, channel: Channel | None) -> None:
        message = fairway_call.receive(connection, fairway_call.MAX_ANSWER)
        if channel is not None:
            self._on_answer(channel, message)
            return
        channel = Channel(connection, message.decode("utf-8", "replace"))
        if not self._on_connected(channel):
            raise ConnectionRefusedError(channel.job)
        self._selector.modify(connection, selectors.EVENT_READ, channel)
