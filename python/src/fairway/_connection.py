"""Calls of the API (docs/api.md): Connect over HTTP/1.1 with JSON."""

from __future__ import annotations

import base64
import collections
import hashlib
import http.client
import json
import os
import platform
import socket
import ssl
import struct
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from ._errors import FairwayError
from .messages import Calls

Message = dict[str, Any]
Path = str | os.PathLike[str]

_SERVICE = "/fairway.v1.Workflow/"
_OF_SERVER = ("ListPilots", "ListRuns", "ListShares", "RemoveRuns", "SubmitWorkflow")  # calls that are about no run
_SERVER_NAME = "fairway"  # in the certificate of every server
_NO_CHECK_TIME = 0x200000  # of OpenSSL: the clocks of two machines may differ
_SOCKET = os.path.join(".fairway", "socket")
_SERVICE_FILE = os.path.join(".fairway", "service")
_MAX_SOCKET_PATH = 100  # bytes, which fit a socket address of every system
_MAX_IDLE = 4  # connections that are kept
_END_OF_STREAM = 2
_API_HEADER = "Fairway-Api"  # of answers: the version of the API of a server
_CALL_TIME = 330.0  # seconds; the server bounds calls by less
_SILENT_TIME = 130.0  # seconds without anything in a stream
_TAKEOVER_TIME = 120.0  # seconds for which a call is repeated, where servers stand by
_TAKEOVER_PAUSE = 0.25
_FROZEN_TIME = 70.0  # as _CALL_TIME and _SILENT_TIME, where another server answers instead


class _Connection(http.client.HTTPConnection):
    """A connection to a socket of this machine, or over TLS to the server of a service file."""

    def __init__(self, client: Client, timeout: float) -> None:
        super().__init__("fairway", timeout=timeout)
        self._client = client
        self.fresh = True  # nothing was asked over it
        self.cut = False  # another thread gave it up

    def connect(self) -> None:
        self.sock = self._client._dial(self.timeout or _CALL_TIME)

    def __del__(self) -> None:
        self.close()

    def abort(self) -> None:
        """Wake the thread that reads from it, if any, with an error."""
        self.cut = True
        if self.sock is not None:
            try:
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)  # past TLS, which another thread uses
            except OSError:
                pass


class _Connections:
    """Those of a process: after a fork parent and child must not use the same. Any thread may use it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.idle: collections.deque[_Connection] = collections.deque()
        self.streams: set[_Connection] = set()

    def take(self) -> _Connection | None:
        try:
            return self.idle.pop()
        except IndexError:
            return None

    def give_back(self, connection: _Connection) -> None:
        connection.fresh = False
        if len(self.idle) < _MAX_IDLE:
            self.idle.append(connection)
        else:
            connection.close()


class Client(Calls):
    """Asks a server. Threads share it, and so do processes: each has connections of its own after a fork.

    Where servers stand by for each other, a call that the active one does not answer is made again at
    the next one, and so is a stream that nothing was had of. A stream that breaks off raises.

    Args:
        location: the folder of a run or of a server that lasts, or a copy of its file .fairway/service.
            Default: FAIRWAY_SERVICE, or else this folder.
        run: the number of the run that calls are about, where the server has several.
        timeout: seconds for which an answer is waited for.
    """

    def __init__(self, location: Path | None = None, run: int = 0, *, timeout: float | None = None) -> None:
        self.location = os.path.abspath(os.fspath(location or os.environ.get("FAIRWAY_SERVICE") or "."))
        self.run = run
        self.timeout = timeout
        self._connections = _Connections()
        self.api: int | None = None  # the version of the API of the server that has answered last, if one has
        self._service: Message | None = None
        if os.path.isfile(self.location):
            self._service = _read_service(self.location)
        elif os.path.isfile(os.path.join(self.location, _SERVICE_FILE)):
            service = _read_service(os.path.join(self.location, _SERVICE_FILE))
            if service.get("standby"):  # its servers have no socket for people
                self._service = service
        self.standby = bool(self._service and self._service.get("standby"))

    def __reduce__(self) -> tuple[Any, ...]:
        return _client, (self.location, self.run, self.timeout)

    def __repr__(self) -> str:
        return f"Client({self.location!r}{f', run={self.run}' if self.run else ''})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()

    @property
    def local(self) -> bool:
        """Whether the server is reached by a socket of this machine."""
        return self._service is None

    if not TYPE_CHECKING:  # Calls has their types

        def call(self, name: str, request: Message | None = None, *, timeout: float | None = None) -> Message:
            """Make one call of the API, such as ListJobs with {"states": ["failed"]}.

            Args:
                name: the name of the call in docs/api.md.
                request: its message, with the names of JSON.
                timeout: seconds, in place of those of the client.

            Returns:
                The answer, whose type is in fairway.messages. Numbers of 64 bits are texts, as JSON of protobuf has
                them.

            Raises:
                FairwayError: the server refused, or none answers.
            """
            return self._answered(name, request, timeout)

        def stream(self, name: str, request: Message | None = None) -> Iterator[Message]:
            """Make a call whose answer is a stream, such as Progress with {"follow": True}.

            Another thread ends it by close.

            Args:
                name: the name of the call in docs/api.md.
                request: its message.

            Raises:
                FairwayError: as with call, or the stream broke off.
            """
            return self._streamed(name, request)

    def answers(self) -> bool:
        """Whether a server answers."""
        try:
            self._call("ListJobs", json.dumps(self._about("ListJobs", {"limit": 1})).encode(), None)
            return True
        except FairwayError as e:
            return e.code != "unavailable"

    def versions(self) -> dict[str, str]:
        """Those of this package ("client") and its "python", of the "program" that is found here, and of the "server".

        That of a program that is not found, or does not answer, is "". Pilots are of the program that started them,
        which is the server's.
        """
        from . import __version__
        from ._program import version

        try:
            server: str = self.call("ListPilots").get("version", "")
        except FairwayError:
            server = ""
        return {"client": __version__, "python": platform.python_version(), "program": version(), "server": server}

    def read(self, lfn: str, version: int = 0) -> bytes:
        """The bytes of a stored file.

        Args:
            lfn: its logical name.
            version: 0: the newest.

        Raises:
            FairwayError: it is not stored.
        """
        return b"".join(self._pieces("Fetch", {"lfn": lfn, "version": version} if version else {"lfn": lfn}))

    def download(self, lfn: str, to: Path, version: int = 0) -> None:
        """Write a stored file to a path of this machine, which it has when it is complete.

        Args:
            lfn: its logical name.
            to: the path.
            version: 0: the newest.

        Raises:
            FairwayError: it is not stored.
        """
        part = f"{os.fspath(to)}.{uuid.uuid4().hex[:8]}.part"
        try:
            with open(part, "wb") as f:
                self._copy(lfn, f, version)
            os.replace(part, to)
        except BaseException:
            if os.path.exists(part):
                os.remove(part)
            raise

    def logs(self, job: str, tail: int = 0) -> str:
        """What the last attempt of a job printed, as text.

        Args:
            job: its name or number.
            tail: bytes of its end. 0: all.

        Raises:
            FairwayError: there is no such job, or it printed nothing.
        """
        return b"".join(self._pieces("Logs", {"job": job, "tailBytes": tail})).decode("utf-8", "replace")

    def close(self) -> None:
        """Close the connections, also those of streams that other threads read. A later call makes new ones."""
        connections, self._connections = self._connections, _Connections()
        if connections.process != os.getpid():
            return  # they are those of the process that this one is a fork of
        for connection in list(connections.streams):
            connection.abort()
        while (idle := connections.take()) is not None:
            idle.close()

    def _answered(self, name: str, request: Message | None, timeout: float | None) -> Message:
        request = self._about(name, request)
        if name == "SubmitWorkflow" and not request.get("key"):
            request["key"] = "once-" + uuid.uuid4().hex  # a repeated submission is known
        body = json.dumps(request).encode()
        lost = 0.0
        while True:
            began = time.monotonic()
            try:
                return self._call(name, body, timeout or self.timeout)
            except FairwayError as e:
                if name == "Stop" and not request.get("run"):
                    raise  # the next server is not meant
                lost = self._lost(e, lost, began)

    def _streamed(self, name: str, request: Message | None) -> Iterator[Message]:
        lost = 0.0
        while True:
            began, had = time.monotonic(), False
            try:
                for message in self._stream(name, self._about(name, request)):
                    had = True
                    yield message
                return
            except FairwayError as e:
                if had:
                    raise
                lost = self._lost(e, lost, began)

    def _copy(self, lfn: str, to: BinaryIO, version: int) -> None:
        for piece in self._pieces("Fetch", {"lfn": lfn, "version": version} if version else {"lfn": lfn}):
            to.write(piece)

    def _pieces(self, name: str, request: Message) -> Iterator[bytes]:
        return (base64.b64decode(piece.get("data", "")) for piece in self.stream(name, request))

    def _of_process(self) -> _Connections:
        connections = self._connections
        if connections.process != os.getpid():
            connections = self._connections = _Connections()
        return connections

    def _lost(self, error: FairwayError, lost: float, began: float) -> float:
        """Wait for the next active server, which was lost then; raise where there is none to wait for."""
        now = time.monotonic()
        if not self.standby or error.code != "unavailable":
            raise error
        if lost and now - lost > _TAKEOVER_TIME and now - began < _TAKEOVER_TIME:
            raise error
        time.sleep(_TAKEOVER_PAUSE)
        return lost if lost and now - began < _TAKEOVER_TIME else now

    def _call(self, name: str, body: bytes, timeout: float | None) -> Message:
        connections = self._of_process()
        timeout = timeout or (_FROZEN_TIME if self.standby else _CALL_TIME)
        while True:
            connection = connections.take() or _Connection(self, timeout)
            try:
                if not connection.fresh and connection.sock is not None:
                    connection.sock.settimeout(timeout)
                connection.request("POST", _SERVICE + name, body, self._headers("application/json"))
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as e:
                connection.close()
                # A connection that was idle may have been closed; nothing was begun on it then.
                if connection.fresh or not isinstance(e, (ConnectionError, http.client.RemoteDisconnected)):
                    raise self._unanswered(e) from e
                continue
            except BaseException:  # such as Ctrl-C: the answer would be taken for that of the next call
                connection.close()
                raise
            connections.give_back(connection)
            if answer.status == 200:
                told = answer.getheader(_API_HEADER, "")
                self.api = int(told) if told.isdigit() else 0
                return json.loads(text)  # type: ignore[no-any-return]
            raise _error(text, answer.status)

    def _stream(self, name: str, request: Message) -> Iterator[Message]:
        body = json.dumps(request).encode()
        connections = self._of_process()
        connection = _Connection(self, self.timeout or (_FROZEN_TIME if self.standby else _SILENT_TIME))
        connections.streams.add(connection)
        try:
            connection.request(
                "POST", _SERVICE + name, struct.pack(">BI", 0, len(body)) + body,
                self._headers("application/connect+json"),
            )
            answer = connection.getresponse()
            if answer.status != 200:
                raise _error(answer.read(), answer.status)
            while True:
                head = answer.read(5)
                if len(head) < 5:
                    raise FairwayError("unavailable", "the server was killed, or its line broke")
                flags, size = struct.unpack(">BI", head)
                message = json.loads(answer.read(size) or b"{}")
                if flags & _END_OF_STREAM:
                    if "error" in message:
                        raise FairwayError(message["error"].get("code", "unknown"), message["error"].get("message", ""))
                    return
                yield message
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as e:
            # A connection that another thread gives up while its answer is read raises any of these.
            if not isinstance(e, (OSError, http.client.HTTPException)) and not connection.cut:
                raise
            raise self._unanswered(e) from e
        finally:
            connections.streams.discard(connection)
            connection.close()

    def _unanswered(self, error: Exception) -> FairwayError:
        """What is wrong where no server answers: there may be none, or no such folder."""
        if not os.path.exists(self.location):
            return FairwayError("unavailable", f"there is no folder {self.location}")
        if self._service is None and isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
            return FairwayError(
                "unavailable", f"nothing runs in {self.location}; start it with `fairway run` or `fairway serve`")
        return FairwayError("unavailable", f"no server answers at {self.location}: {error}")

    def _about(self, name: str, request: Message | None) -> Message:
        request = dict(request or {})
        if self.run and name not in _OF_SERVER:
            request.setdefault("run", self.run)
        return request

    def _headers(self, kind: str) -> dict[str, str]:
        headers = {"Content-Type": kind, "Connect-Protocol-Version": "1"}
        if self._service is not None:
            headers["Fairway-Launch"] = self._service["launch"]
            headers["Authorization"] = "Bearer " + self._service["token"]
        return headers

    def _dial(self, timeout: float) -> socket.socket:
        if self._service is None:
            return _dial_socket(os.path.join(self.location, _SOCKET), timeout)
        errors: list[str] = []
        for address in self._service["addresses"]:
            host, _, port = address.rpartition(":")
            try:
                # A server that is frozen takes the connection, and says nothing.
                plain = socket.create_connection((host.strip("[]"), int(port)), timeout=3 if self.standby else 10)
                secure = _context(self._service).wrap_socket(plain, server_hostname=_SERVER_NAME)
                secure.settimeout(timeout)
                return secure
            except OSError as e:
                errors.append(f"{address}: {e}")
        raise ConnectionError("; ".join(errors))


def _client(location: str, run: int, timeout: float | None) -> Client:
    return Client(location, run, timeout=timeout)


def _read_service(path: str) -> Message:
    with open(path, encoding="utf-8") as f:
        return json.load(f)  # type: ignore[no-any-return]


def _dial_socket(path: str, timeout: float) -> socket.socket:
    if os.path.isfile(path):  # its name is too long for a socket, and so it holds that of one
        with open(path, encoding="utf-8") as f:
            path = f.read().strip()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    folder = None
    try:
        if len(os.fsencode(path)) > _MAX_SOCKET_PATH and os.path.isdir("/proc/self/fd"):
            folder = os.open(os.path.dirname(path), os.O_RDONLY)
            path = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    finally:
        if folder is not None:
            os.close(folder)
    return connection


def _context(service: Message) -> ssl.SSLContext:
    """The settings by which only the server of a service file is believed."""
    text = service.get("certificate", "")
    if not text:
        raise ConnectionError("the service file has no certificate: take a new copy of it")
    pin = "sha256:" + hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).hexdigest()
    if pin != service["pin"]:
        raise ConnectionError("the certificate of the service file is not that of its pin")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=text)
    context.verify_flags = ssl.VerifyFlags(context.verify_flags | _NO_CHECK_TIME)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _error(text: bytes, status: int) -> FairwayError:
    try:
        told = json.loads(text)
        return FairwayError(told.get("code", "unknown"), told.get("message", ""))
    except ValueError:
        return FairwayError("unavailable", f"the server answered {status}: {text[:200].decode('utf-8', 'replace')}")
