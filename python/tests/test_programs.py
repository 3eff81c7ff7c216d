"""Programs around the client: forks, threads, asyncio, notebooks, pools, and programs that are ended."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import calls

import fairway

_ENDED = 60.0  # seconds in which a condition must have come; the machine may be busy

_RUNS = "running = executor.submit(calls.run_until, begun, 'never'); calls.wait_for(begun)"

# When a program is ended that has an executor, and what it has done before.
MOMENTS = {
    "its server starts": "",
    "nothing was submitted": "",
    "calls were submitted": "futures = [executor.submit(calls.run_until, begun, 'never') for _ in range(3)]",
    "a call runs": _RUNS,
    "many calls wait": _RUNS + "; futures = [executor.submit(calls.square, x) for x in range(2000)]",
    "short calls run": "list(executor.map(calls.square, range(9))); futures = executor.map(calls.square, range(2000))",
    "a call is being ended": _RUNS + "; running.cancel()",
    "a call has left a process": "executor.submit(calls.leave_process, begun); calls.wait_for(begun)",
    "it leaves": _RUNS,
    "its executor is closed": "executor.submit(calls.square, 2)",
}

thorough = unittest.skipIf(os.environ.get("FAIRWAY_TEST_SHORT"), "it is one of `make test-python`")


def until(condition):
    """Wait for a condition."""
    deadline = time.monotonic() + _ENDED
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.02)
    return True


def processes_in(folder):
    """The processes that were started with a folder for temporary files."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                variables = f.read().split(b"\0")
            with open(f"/proc/{pid}/stat", "rb") as f:
                zombie = f.read().rpartition(b")")[2].split()[0] == b"Z"
        except OSError:
            continue
        if f"TMPDIR={folder}".encode() in variables and not zombie:
            found.append(int(pid))
    return found


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def show(client, job):
    return client.call("ShowJob", {"job": job})["summary"]["name"]


def shown(client, job, count):
    """Whether each answer is that of its call."""
    return all(show(client, job) == job for _ in range(count))


def in_child(check):
    """Whether check() is true in a process that is a fork of this one."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


class ProgramsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self, text, *arguments):
        paths = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))
        return subprocess.Popen([sys.executable, "-c", text, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                                text=True, env={**os.environ, "PYTHONPATH": paths, "TMPDIR": self.folder})

    def test_forks(self):
        with fairway.Executor(1) as executor:
            first, second = executor.submit(calls.square, 1), executor.submit(calls.square, 2)
            self.assertEqual((first.result(), second.result()), (1, 4))
            gate = os.path.join(self.folder, "gate")
            waiting = executor.submit(calls.wait_for, gate)

            def refused():
                for call in (lambda: executor.submit(calls.square, 3), lambda: waiting.result()):
                    try:
                        call()
                    except RuntimeError as e:
                        if "fork" not in str(e):
                            return False
                    else:
                        return False
                with executor:  # leaving it ends nothing
                    return True

            self.assertTrue(in_child(refused))
            child = os.fork()
            if child == 0:
                os._exit(0 if shown(executor.client, second.job, 100) else 1)
            self.assertTrue(shown(executor.client, first.job, 100))
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            open(gate, "w").close()
            self.assertTrue(waiting.result())

    def test_pools(self):
        with fairway.Executor(1) as executor:
            job = executor.submit(calls.square, 1)
            job.result()
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
                    found = [pool.submit(show, executor.client, job.job) for _ in range(20)]
                    self.assertEqual({future.result() for future in found}, {job.job})
                    with self.assertRaises(fairway.FairwayError) as caught:
                        pool.submit(show, executor.client, "nowhere").result()
                    self.assertEqual(caught.exception.code, "not_found")

    def test_executors_and_futures_go_to_no_call(self):
        with fairway.Executor(1) as executor:
            first = executor.submit(calls.square, 1)
            for what, says in ((executor, "an executor is that of"), (first, "a future is that of its process")):
                self.assertRaisesRegex(TypeError, says, executor.submit(calls.square, what).result)
                self.assertRaisesRegex(TypeError, says, pickle.dumps, what)
            self.assertEqual(executor.options(retries=1).submit(calls.square, 2).result(), 4)

    def test_threads_share_connections(self):
        with fairway.Executor(1) as executor:
            jobs = [executor.submit(calls.square, x) for x in range(4)]
            for job in jobs:
                job.result()
            before, wrong = descriptors(), []

            def ask(job):
                if not shown(executor.client, job.job, 10):
                    wrong.append(job)

            for _ in range(2):
                threads = [threading.Thread(target=ask, args=(jobs[k % 4],)) for k in range(30)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(wrong, [])
            self.assertLessEqual(descriptors(), before + 4)

    def test_descriptors_are_given_back(self):
        with fairway.Executor(1) as executor:
            executor.submit(calls.square, 1).result()
        before = descriptors()
        with fairway.Executor(1) as executor:
            executor.submit(calls.square, 1).result()
        self.assertLessEqual(descriptors(), before)

    def test_asyncio(self):
        async def main(executor):
            loop = asyncio.get_running_loop()
            found = await asyncio.gather(*(asyncio.wrap_future(executor.submit(calls.square, x)) for x in range(20)))
            found.append(await loop.run_in_executor(executor, calls.square, 20))
            never = asyncio.wrap_future(executor.submit(calls.wait_for, os.path.join(self.folder, "never")))
            never.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await never
            return found

        with fairway.Executor(1) as executor:
            self.assertEqual(asyncio.run(main(executor)), [x * x for x in range(21)])

    def test_notebook(self):
        try:
            import nbclient
            import nbformat.v4 as notebooks
        except ImportError:
            self.skipTest("nbclient is not installed")
        with open(os.path.join(self.folder, "beside.py"), "w") as f:
            f.write("def twice(x): return 2 * x\n")
        cells = ["import fairway, beside\nexecutor = fairway.Executor(1)", "def f(x): return beside.twice(x) + 1",
                 "list(executor.map(f, range(3), progress=True))", "executor", "executor.shutdown()"]
        notebook = notebooks.new_notebook(cells=[notebooks.new_code_cell(cell) for cell in cells])
        nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": self.folder}}).execute()
        outputs = notebook.cells[2].outputs
        self.assertEqual([o.data["text/plain"] for o in outputs if o.output_type == "execute_result"], ["[1, 3, 5]"])
        self.assertIn("3/3 calls", notebook.cells[3].outputs[0].data["text/html"])

    def test_nothing_goes_on_for_a_program_that_was_ended(self):
        text = ("import sys, threading, calls, fairway, fairway._program\n"
                "begun, moment, prepare = sys.argv[1:]\n"
                "def now(then=threading.Event().wait):\n"
                "    print('now', flush=True)\n"
                "    then()\n"
                "if moment == 'its server starts': fairway._program.Server.wait_open = lambda self, client: now()\n"
                "with fairway.Executor(1) as executor:\n"
                "    exec(prepare)\n"
                "    if moment != 'its executor is closed': now(**{'then': int} if moment == 'it leaves' else {})\n"
                "now()\n")
        for n, number in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGINT)):
            for m, (moment, prepare) in enumerate(MOMENTS.items()):
                if os.environ.get("FAIRWAY_TEST_SHORT") and (m - n) % 4:
                    continue  # each moment has one of the signals
                with self.subTest(signal=number, moment=moment):
                    begun = os.path.join(self.folder, f"{number} {moment}")
                    program = self.program(text, begun, moment, prepare)
                    self.assertEqual(program.stdout.readline(), "now\n")
                    program.send_signal(number)
                    self.assertNotEqual(program.wait(_ENDED), 0)
                    program.stdout.close()
                    self.assertTrue(until(lambda: not processes_in(self.folder)), processes_in(self.folder))

    @thorough
    def test_two_programs_in_a_folder(self):
        text = ("import sys, calls, fairway\n"
                "with fairway.Executor(folder='runs') as executor:\n"
                "    print(executor.submit(calls.square, 2).result(), flush=True)\n"
                "    calls.wait_for(sys.argv[1])\n"
                "    print(executor.submit(calls.square, 3).result(), flush=True)\n")
        for end in ("leaves", "is killed"):
            with self.subTest(first=end):
                go, ended = (os.path.join(self.folder, f"{name} {end}") for name in ("go", "ended"))
                first = self.program(text, go)
                self.assertEqual(first.stdout.readline(), "4\n")
                second = self.program(text, ended)
                self.assertEqual(second.stdout.readline(), "4\n")
                if end == "leaves":
                    open(go, "w").close()
                else:
                    first.kill()
                first.communicate()
                open(ended, "w").close()
                self.assertEqual((second.communicate()[0], second.returncode), ("9\n", 0))
                self.assertTrue(until(lambda: not processes_in(self.folder)))


if __name__ == "__main__":
    unittest.main()
