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
    """The connection of a job. Nobody waits for the job: it sends and takes as it likes.

    Args:
        connection: to the job.
        watch: is called with the channel and what its connection is to be ready for, READ and WRITE of selectors.

    Attributes:
        job: its name; "": it has not told it yet.
        began: when it was connected.
        answered: when it has given results last.
    """

    def __init__(self, connection: socket.socket, watch: Callable[[Channel, int], None]) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.job = ""
        self.began = time.monotonic()
        self.answered = self.began
        self._watch = watch
        self._received = bytearray()  # of a message that is not whole
        self._sending = threading.Lock()  # guards the next one
        self._unsent = bytearray()

    def send(self, message: bytes) -> None:
        """Send calls, as soon as the job takes them. If that fails the job ends, and has not made them."""
        with self._sending:
            self._unsent += fairway_call.framed(message)
        self.flush()

    def flush(self) -> None:
        """Send of what is left what can be sent now."""
        with self._sending:
            try:
                while self._unsent:
                    del self._unsent[: self.connection.send(self._unsent)]
            except BlockingIOError:
                self._watch(self, selectors.EVENT_READ | selectors.EVENT_WRITE)
                return
            except OSError:
                self.close()
        self._watch(self, selectors.EVENT_READ)

    def receive(self, most: int) -> list[bytes]:
        """The messages that are whole by now, of so many bytes at most. The error is an OSError if it has ended."""
        try:
            piece = self.connection.recv(1 << 20)
        except BlockingIOError:
            return []
        if not piece:
            raise ConnectionResetError(self.job)
        self._received += piece
        return fairway_call.whole(self._received, most)

    def close(self) -> None:
        """Send and receive nothing any more. The thread of the channels, which is woken, gives the connection back."""
        _shut(self.connection)


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
        self._watching = threading.Lock()  # guards changes of the next one
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
            for key, events in self._selector.select():
                channel: Channel | None = key.data
                try:
                    if channel is None:
                        self._accept()
                        continue
                    if events & selectors.EVENT_WRITE:
                        channel.flush()
                    if events & selectors.EVENT_READ:
                        self._receive(channel)
                except OSError:
                    if channel is None:
                        self._give_back()  # it was closed, or there are no descriptors for more
                        return
                    with self._watching:
                        self._selector.unregister(channel.connection)
                        channel.connection.close()

    def _give_back(self) -> None:
        with self._watching:
            for key in list(self._selector.get_map().values()):
                connection: socket.socket = key.fileobj  # type: ignore[assignment]
                _shut(connection)
                connection.close()
            self._selector.close()

    def _watch(self, channel: Channel, events: int) -> None:
        with self._watching:
            try:
                if self._selector.get_key(channel.connection).events != events:
                    self._selector.modify(channel.connection, events, channel)
            except (KeyError, RuntimeError, ValueError):
                pass  # it has ended

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        if fairway_call.of_this_user(connection):
            self._selector.register(connection, selectors.EVENT_READ, Channel(connection, self._watch))
        else:
            connection.close()

    def _receive(self, channel: Channel) -> None:
        for message in channel.receive(fairway_call.MAX_ANSWER):
            if channel.job:
                self._on_answer(channel, message)
                continue
            channel.job = message.decode("utf-8", "replace")
            if not self._on_connected(channel):
                raise ConnectionRefusedError(channel.job)
