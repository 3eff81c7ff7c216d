"""Calls of the API (docs/api.md): Connect over HTTP/1.1 with JSON."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import socket
import ssl
import struct
import threading
import time
import uuid
from typing import Any, Dict, Iterator, List, Optional, Union

Message = Dict[str, Any]

_SERVICE = "/fairway.v1.Workflow/"
_SERVER_NAME = "fairway"  # in the certificate of every server
_NO_CHECK_TIME = 0x200000  # of OpenSSL: the clocks of two machines may differ
_SOCKET = os.path.join(".fairway", "socket")
_SERVICE_FILE = os.path.join(".fairway", "service")
_MAX_PATH = 100  # bytes of the path of a socket, which the kernel cuts at 107
_END_OF_STREAM = 2
_CALL_TIME = 330.0  # seconds; the server bounds calls by less
_SILENT_TIME = 130.0  # seconds without anything in a stream
_TAKEOVER_TIME = 120.0  # seconds for which a call is repeated, where servers stand by
_TAKEOVER_PAUSE = 0.25
_FROZEN_TIME = 70.0  # as _CALL_TIME and _SILENT_TIME, where another server answers instead


class FairwayError(Exception):
    """An answer of the API that is an error.

    code is that of docs/api.md ("not_found"), or "unavailable" where no server answers.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Connection(http.client.HTTPConnection):
    """A connection to a socket of this machine, or over TLS to the server of a service file."""

    def __init__(self, client: "Client", timeout: float) -> None:
        super().__init__("fairway", timeout=timeout)
        self._client = client

    def connect(self) -> None:
        self.sock = self._client._dial(self.timeout)


class Client:
    """Asks a server. Any thread may use it.

    at is the folder of a run or of a server that lasts, or a copy of the file .fairway/service
    (the default is FAIRWAY_SERVICE, or else this folder). run is the number of the run that calls
    are about, where the server has several.

    Where servers stand by for each other, a call that the active one does not answer is made again
    at the next one, and so is a stream that nothing was had of. A stream that breaks off raises.
    """

    def __init__(self, at: Union[str, os.PathLike, None] = None, run: int = 0) -> None:
        self.at = os.path.abspath(os.fspath(at or os.environ.get("FAIRWAY_SERVICE") or "."))
        self.run = run
        self._local = threading.local()
        self._lock = threading.Lock()  # guards what follows
        self._connections: List[_Connection] = []  # of all threads
        self._service: Optional[Message] = None
        if os.path.isfile(self.at):
            with open(self.at, encoding="utf-8") as f:
                self._service = json.load(f)
        elif os.path.isfile(os.path.join(self.at, _SERVICE_FILE)):
            with open(os.path.join(self.at, _SERVICE_FILE), encoding="utf-8") as f:
                service = json.load(f)
            if service.get("standby"):  # its servers have no socket for people
                self._service = service
        self._standby = bool(self._service and self._service.get("standby"))

    def call(self, name: str, request: Optional[Message] = None) -> Message:
        """Make one call, such as call("ListJobs", {"states": ["failed"]}), and return its answer."""
        request = self._about(request)
        if self._standby and name == "SubmitWorkflow" and not request.get("key"):
            request["key"] = "once-" + uuid.uuid4().hex  # a repeated submission is known
        lost = 0.0
        while True:
            began = time.monotonic()
            try:
                return self._call(name, json.dumps(request).encode())
            except FairwayError as e:
                if name == "Stop" and not request.get("run"):
                    raise  # the next server is not meant
                lost = self._lost(e, lost, began)

    def _lost(self, error: FairwayError, lost: float, began: float) -> float:
        """Wait for the next active server, which was lost then; raise where there is none to wait for."""
        now = time.monotonic()
        if not self._standby or error.code != "unavailable":
            raise error
        if lost and now - lost > _TAKEOVER_TIME and now - began < _TAKEOVER_TIME:
            raise error
        time.sleep(_TAKEOVER_PAUSE)
        return lost if lost and now - began < _TAKEOVER_TIME else now

    def _call(self, name: str, body: bytes) -> Message:
        for again in (True, False):
            connection = getattr(self._local, "connection", None)
            fresh = connection is None
            if fresh:
                connection = self._local.connection = self._opened(_FROZEN_TIME if self._standby else _CALL_TIME)
            try:
                connection.request("POST", _SERVICE + name, body, self._headers("application/json"))
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as e:
                self._let_go(connection)
                self._local.connection = None
                # A connection that was idle may have been closed; nothing was begun on it then.
                if fresh or not again or not isinstance(e, (ConnectionError, http.client.RemoteDisconnected)):
                    raise self._unanswered(e) from e
                continue
            if answer.status == 200:
                return json.loads(text)
            raise _error(text, answer.status)
        raise AssertionError

    def stream(self, name: str, request: Optional[Message] = None) -> Iterator[Message]:
        """Make a call whose answer is a stream, such as stream("Progress", {"follow": True})."""
        lost = 0.0
        while True:
            began, had = time.monotonic(), False
            try:
                for message in self._stream(name, self._about(request)):
                    had = True
                    yield message
                return
            except FairwayError as e:
                if had:
                    raise
                lost = self._lost(e, lost, began)

    def _stream(self, name: str, request: Message) -> Iterator[Message]:
        body = json.dumps(request).encode()
        connection = self._opened(_FROZEN_TIME if self._standby else _SILENT_TIME)
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
        except (OSError, http.client.HTTPException) as e:
            raise self._unanswered(e) from e
        finally:
            self._let_go(connection)

    def _unanswered(self, error: Exception) -> FairwayError:
        """What is wrong where no server answers: there may be none, or no such folder."""
        if not os.path.exists(self.at):
            return FairwayError("unavailable", f"there is no folder {self.at}")
        if self._service is None and isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
            return FairwayError("unavailable", f"nothing runs in {self.at}; start it with `fairway run` or `fairway serve`")
        return FairwayError("unavailable", f"no server answers at {self.at}: {error}")

    def read(self, lfn: str, version: int = 0) -> bytes:
        """The bytes of a stored file, by its logical name."""
        asked = {"lfn": lfn, "version": version} if version else {"lfn": lfn}
        pieces = self.stream("Fetch", asked)
        return b"".join(base64.b64decode(piece.get("data", "")) for piece in pieces)

    def logs(self, job: str) -> str:
        """What the last attempt of a job printed, as text."""
        pieces = self.stream("Logs", {"job": job})
        return b"".join(base64.b64decode(piece.get("data", "")) for piece in pieces).decode("utf-8", "replace")

    def close(self) -> None:
        """Close the connections. A later call makes new ones."""
        with self._lock:
            connections, self._connections = self._connections, []
            self._local = threading.local()
        for connection in connections:
            connection.close()

    def _opened(self, timeout: float) -> _Connection:
        connection = _Connection(self, timeout)
        with self._lock:
            self._connections.append(connection)
        return connection

    def _let_go(self, connection: _Connection) -> None:
        connection.close()
        with self._lock:
            if connection in self._connections:
                self._connections.remove(connection)

    def _about(self, request: Optional[Message]) -> Message:
        request = dict(request or {})
        if self.run:
            request.setdefault("run", self.run)
        return request

    def _headers(self, kind: str) -> Dict[str, str]:
        headers = {"Content-Type": kind, "Connect-Protocol-Version": "1"}
        if self._service is not None:
            headers["Fairway-Launch"] = self._service["launch"]
            headers["Authorization"] = "Bearer " + self._service["token"]
        return headers

    def _dial(self, timeout: Optional[float]) -> socket.socket:
        if self._service is None:
            return _dial_socket(os.path.join(self.at, _SOCKET), timeout)
        errors: List[str] = []
        for address in self._service["addresses"]:
            host, _, port = address.rpartition(":")
            try:
                # A server that is frozen takes the connection, and says nothing.
                plain = socket.create_connection((host.strip("[]"), int(port)), timeout=3 if self._standby else 10)
                secure = _context(self._service).wrap_socket(plain, server_hostname=_SERVER_NAME)
                secure.settimeout(timeout)
                return secure
            except OSError as e:
                errors.append(f"{address}: {e}")
        raise ConnectionError("; ".join(errors))


def _dial_socket(path: str, timeout: Optional[float]) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    folder = None
    try:
        if len(os.fsencode(path)) > _MAX_PATH and os.path.isdir("/proc/self/fd"):
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
