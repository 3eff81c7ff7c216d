"""What the client asks of a server that loses what it was sent, or goes away: a stand-in for it says so."""

import http.server
import json
import os
import socketserver
import struct
import tempfile
import threading
import unittest

from fairway import Client, FairwayError, OpenRun


class Standin(socketserver.ThreadingUnixStreamServer):
    """Answers calls in a folder as a function says: answer(name, request) returns an answer, or raises.

    A FairwayError is the answer; any other error ends the connection without one. A stream has one report, and goes
    on until end_streams.
    """

    daemon_threads = True

    def __init__(self, folder, answer):
        os.mkdir(os.path.join(folder, ".fairway"))
        super().__init__(os.path.join(folder, ".fairway", "socket"), Handler)
        self.answer, self.asked, self.streams, self.api = answer, [], [], "1"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def requests(self, name):
        return [request for asked, request in self.asked if asked == name]

    def end_streams(self):
        while self.streams:
            self.streams.pop().set()

    def handle_error(self, request, client_address):
        pass  # it is what a test wants


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "a client"

    def log_message(self, *args):
        pass

    def do_POST(self):
        name, body = self.path.rpartition("/")[2], self.rfile.read(int(self.headers["Content-Length"]))
        stream = self.headers["Content-Type"] == "application/connect+json"
        request, status = json.loads(body[5:] if stream else body), 200
        self.server.asked.append((name, request))
        try:
            answer = self.server.answer(name, request)
        except FairwayError as e:
            answer, status = {"code": e.code, "message": str(e)}, 400
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Fairway-Api", self.server.api)
        if stream:
            ends = threading.Event()
            self.server.streams.append(ends)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(struct.pack(">BI", 0, len(text)) + text)
            ends.wait()
            return
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class ConnectionTest(unittest.TestCase):
    def serve(self, answer):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        server = Standin(folder.name, answer)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.end_streams)
        return server, folder.name

    def test_submission_whose_answer_is_lost_is_repeated_with_its_key(self):
        lost = [ConnectionError]

        def answer(name, request):
            if name == "SubmitWorkflow" and lost:
                raise lost.pop()
            return {"run": 1}

        server, folder = self.serve(answer)
        with Client(folder) as client:
            client.call("ListJobs")  # its connection is used again, and breaks
            client.call("SubmitWorkflow", {"workflow": "eA=="})
            client.call("SubmitWorkflow", {"workflow": "eA=="})
            client.call("SubmitWorkflow", {"workflow": "eA==", "key": "mine"})
        first, again, other, named = (request["key"] for request in server.requests("SubmitWorkflow"))
        self.assertTrue(first)
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertEqual(named, "mine")

    def test_servers_that_do_not_understand_the_client_are_refused(self):
        for api in ("", "0", "odd"):
            server, folder = self.serve(lambda name, request: {})
            server.api = api
            for where in ({"folder": folder}, {"server": folder}, {"server": folder, "run": 3}):
                with self.assertRaisesRegex(FairwayError, "is of an older Fairway than fairway-jobs [0-9.]+") as caught:
                    OpenRun(**where)
                self.assertEqual(caught.exception.code, "unimplemented")
            self.assertEqual({name for name, _ in server.asked}, {"ListJobs"})

    def test_calls_about_a_server_name_no_run(self):
        server, folder = self.serve(lambda name, request: {})
        with Client(folder, 3) as client:
            client.call("ListPilots")
            client.call("ListJobs")
        self.assertEqual(server.asked, [("ListPilots", {}), ("ListJobs", {"run": 3})])

    def test_upload_whose_parts_are_lost_is_repeated_three_times(self):
        def answer(name, request):
            if name == "Upload" and request["offset"]:
                raise FairwayError("out_of_range", "that part was lost")
            return {"size": 4 << 20} if name == "Upload" else {}

        server, folder = self.serve(answer)
        with OpenRun(server=folder, run=1) as run:
            with self.assertRaisesRegex(FairwayError, "that part was lost"):
                run.store(bytes(5 << 20))
            server.end_streams()
        self.assertEqual([request["offset"] for request in server.requests("Upload")], 4 * [0, 4 << 20])

    def test_many_ends_that_were_missed_are_asked_for_in_one_call(self):
        names, ended, heard = [f"job-{k}" for k in range(1001)], [], threading.Event()

        def answer(name, request):
            if name == "Submit":
                return {"jobs": [{"name": job["name"], "id": int(job["name"][4:]) + 1, "state": "waiting"}
                                 for job in request["jobs"]]}
            if name == "ShowJob":
                return {"summary": {"name": request["job"], "state": "done"}}
            return {"jobs": [{"summary": {"name": job, "state": "done"}} for job in request.get("jobs", [])]}

        def on_end(jobs):
            ended.extend(job["summary"]["name"] for job in jobs)
            if len(ended) == len(names):
                heard.set()

        server, folder = self.serve(answer)
        with OpenRun(server=folder, run=1, on_end=on_end) as run:
            run.submit([{"name": name} for name in names])
            server.end_streams()  # as when a server goes away and comes back
            self.assertTrue(heard.wait(60))
            server.end_streams()
        self.assertEqual(ended, names)
        asked = [len(request["jobs"]) for request in server.requests("Endings") if "jobs" in request]
        self.assertEqual(asked, [1000, 1])
        self.assertEqual(len(server.requests("ShowJob")), 1)
