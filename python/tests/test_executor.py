"""Executor against a real Fairway: FAIRWAY_BIN, or the one on the PATH."""

import concurrent.futures
import contextlib
import functools
import io
import multiprocessing
import os
import pickle
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import calls
from test_programs import thorough, until

import fairway
from fairway._program import program


class ExecutorTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_results_and_errors(self):
        with fairway.Executor(2) as executor:
            self.assertEqual(executor.submit(calls.square, 7).result(), 49)
            self.assertEqual(list(executor.map(calls.square, range(20))), [x * x for x in range(20)])
            self.assertEqual(list(executor.map(pow, [2, 3, 4], [2, 2, 2], chunksize=2)), [4, 9, 16])
            with self.assertRaises(KeyError) as caught:
                executor.submit(calls.fail, 3).result()
            self.assertEqual(caught.exception.args, ("no such thing", 3))
            self.assertTrue(caught.exception.log.startswith("before it failed\n"))
            self.assertIn("calls.py", str(caught.exception.__cause__))
            with self.assertRaises(fairway.JobFailed) as caught:
                executor.submit(calls.fail_oddly).result()
            self.assertIn("Unpicklable: 1", str(caught.exception))
            with self.assertRaises(fairway.JobFailed) as caught:
                executor.submit(calls.die).result()
            self.assertIn("SIGKILL", caught.exception.reason)
            large = b"x" * 300_000  # goes by a file
            self.assertEqual(executor.submit(len, large).result(), len(large))
            self.assertEqual(executor.submit(bytes.upper, large).result(), large.upper())
        with self.assertRaises(RuntimeError):
            executor.submit(calls.square, 1)
        self.assertFalse(os.path.exists(executor.client.location))

    def test_no_more_calls_run_than_there_are_workers(self):
        lock = os.path.join(self.folder, "lock")
        for options in ([], ["--cache", "host"]):
            with self.subTest(options=options), fairway.Executor(1, together=False, options=options) as executor:
                self.assertEqual(list(executor.map(calls.alone, [lock] * 4)), [True] * 4)

    @thorough
    def test_short_calls_share_jobs(self):
        with fairway.Executor(2, folder=os.path.join(self.folder, "run")) as executor:
            list(executor.map(calls.square, range(10)))  # now it is known how long they take
            futures = [executor.submit(calls.square, x) for x in range(200)]
            self.assertEqual([future.result() for future in futures], [x * x for x in range(200)])
            self.assertLess(len({future.job for future in futures}), 150)
            # One that fails, or prints, or makes a file, does so alone.
            futures = [executor.submit(calls.odd_one, x) for x in range(100)]
            for x, future in enumerate(futures):
                if x % 10 == 3:
                    self.assertEqual(future.exception().args, ("no such thing", x))
                    self.assertIn("calls.py", str(future.exception().__cause__))
                elif x % 10 == 4:
                    self.assertEqual(future.result().read_text(), str(x))
                else:
                    self.assertEqual(future.result(), x)
            # Others do not notice that one is killed.
            futures = [executor.submit(calls.die_at, x, 42) for x in range(100)]
            for x, future in enumerate(futures):
                if x == 42:
                    self.assertIsInstance(future.exception(), fairway.JobFailed)
                else:
                    self.assertEqual(future.result(), x)
            # A call that takes longer than was thought keeps no others waiting that could run.
            gate = os.path.join(self.folder, "gate")
            futures = [executor.submit(calls.square_behind, x, gate if x == 0 else "") for x in range(50)]
            self.assertEqual([future.result() for future in futures[25:]], [x * x for x in range(25, 50)])
            open(gate, "w").close()
            self.assertEqual(futures[0].result(), 0)

    def test_files_stay_between_calls(self):
        path = os.path.join(self.folder, "in.txt")
        with open(path, "w") as f:
            f.write("given")
        with fairway.Executor(1, options=["--cache", "host"]) as executor:  # here it would link past the cache
            self.assertEqual(executor.submit(calls.read, fairway.File(path)).result(), "given")
            made = executor.submit(calls.make, "hello").result()
            self.assertEqual((made["made"].read_text(), made["length"]), ("hello", 5))
            self.assertEqual(executor.submit(calls.read, made["made"]).result(), "hello")
            executor.submit(calls.read, fairway.File(path)).result()
            cache = executor.client.call("ListCaches")["nodes"][0]
            self.assertGreaterEqual(int(cache["hits"]), 2)

    def test_what_is_remembered(self):
        path = os.path.join(self.folder, "lines")
        for _ in range(2):
            with fairway.Executor(1, folder=os.path.join(self.folder, "run"), remember=True) as executor:
                self.assertEqual(executor.submit(calls.append, path, "a").result(), "a")
                self.assertEqual(executor.submit(calls.append, path, "a").result(), "a")
        with open(path) as f:
            self.assertEqual(f.read(), "a\n")

    def test_what_people_see(self):
        with open(os.path.join(self.folder, "lines"), "w") as f:
            f.write("given")
        gate = os.path.join(self.folder, "gate")
        with fairway.Executor(1, folder=os.path.join(self.folder, "a<b")) as executor:
            with contextlib.redirect_stderr(io.StringIO()) as told:
                found = list(executor.map(calls.square, range(4), chunksize=2, progress=True))
            self.assertEqual((found, "square: 4 done" in told.getvalue()), ([0, 1, 4, 9], True))
            waiting = executor.submit(calls.wait_for, gate)
            self.assertIn("2 done, 1 to do", repr(executor))
            self.assertRegex(executor._repr_html_(), '/a&lt;b.*<progress value="2" max="3"></progress> 2/3 calls')
            for wrong in ({"chunksize": 0}, {"buffersize": 0}):
                with self.assertRaises(ValueError):
                    executor.map(calls.square, [1], **wrong)
            with self.assertWarnsRegex(UserWarning, "is open already: --pilots 2 changes nothing"):
                other = fairway.Executor(2, folder=os.path.join(self.folder, "a<b"))
            self.assertFalse(other.submit(functools.partial(calls.square, 2)).done())  # behind the one that waits
            open(gate, "w").close()
            other.shutdown()
            self.assertTrue(waiting.result())
        file = fairway.File(os.path.join(self.folder, "lines"))
        self.assertEqual((eval(repr(file), {"File": fairway.File}), len({file, fairway.File(file)})), (file, 1))
        with file.open() as f:
            self.assertEqual((f.read(), file.read_bytes()), ("given", b"given"))

    def test_calls_that_cannot_be_sent(self):
        with fairway.Executor(1, folder=os.path.join(self.folder, "run")) as executor:
            for large in (b"", b"x" * 100_000):
                self.assertIsInstance(executor.submit(len, large, threading.Lock()).exception(), TypeError)
            self.assertFalse(os.path.exists(executor._queue.folder) and os.listdir(executor._queue.folder))
            with self.assertRaises(fairway.JobFailed):
                executor.submit(calls.read, fairway.File("nowhere")).result(60)

    def test_ends_of_executors(self):
        gate = os.path.join(self.folder, "gate")
        executor = fairway.Executor(1)
        place = executor.client.location
        futures = [executor.submit(calls.wait_for, gate) for _ in range(3)]
        self.assertTrue(until(futures[0].running))
        executor.shutdown(wait=False, cancel_futures=True)
        self.assertEqual((futures[0].cancelled(), futures[2].cancelled()), (False, True))  # the next may be sent
        abandoned = fairway.Executor(1)
        left = abandoned.client.location
        kept = abandoned.submit(calls.wait_for, gate)
        del abandoned  # what was submitted goes on, and its run ends with it
        open(gate, "w").close()
        self.assertTrue(futures[0].result() and kept.result())
        executor.shutdown()
        self.assertFalse(os.path.exists(place))
        self.assertTrue(until(lambda: not os.path.exists(left)))
        with self.assertRaises(KeyboardInterrupt), fairway.Executor(1) as executor:
            never = executor.submit(calls.wait_for, os.path.join(self.folder, "never"))
            raise KeyboardInterrupt
        self.assertTrue(never.cancelled())

    @thorough
    def test_programs_that_end_with_calls(self):
        for end, printed in (("", "9"), ("raise KeyboardInterrupt", "True")):
            with self.subTest(end):
                text = ("import calls, fairway, sys\n"
                        "executor = fairway.Executor(1)\n"
                        "future = executor.submit(calls.square, 3)\n"
                        "if not sys.argv[1]: future.add_done_callback(lambda done: print(done.result()))\n"
                        "else:\n"
                        "    future.result()\n"
                        "    never = executor.submit(calls.wait_for, 'never')\n"
                        "    never.add_done_callback(lambda done: print(done.cancelled()))\n"
                        "    raise KeyboardInterrupt\n")
                paths = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))
                done = subprocess.run([sys.executable, "-c", text, end], env={**os.environ, "PYTHONPATH": paths},
                                      timeout=120, capture_output=True, text=True, check=False)
                self.assertEqual(done.stdout.split(), [printed])

    def test_cancel(self):
        with fairway.Executor(1) as executor:
            running = executor.submit(calls.wait_for, os.path.join(self.folder, "never"))
            self.assertTrue(running.cancel())
            self.assertTrue(running.cancelled())
            self.assertEqual(executor.submit(calls.square, 2).result(), 4)

    def test_no_result_is_lost_with_the_server(self):
        gate = os.path.join(self.folder, "gate")
        with fairway.Executor(1, folder=os.path.join(self.folder, "run")) as executor:
            waiting = executor.submit(calls.wait_for, gate)
            futures = [executor.submit(calls.square, x) for x in range(10)]
            os.kill(executor._queue.run._server.process.pid, signal.SIGKILL)
            more = [executor.submit(calls.square, x) for x in range(10)]
            open(gate, "w").close()
            self.assertTrue(waiting.result())
            self.assertEqual([f.result() for f in futures + more], [x * x for x in range(10)] * 2)

    @thorough
    def test_server_that_lasts_over_tls(self):
        state = os.path.join(self.folder, "state")
        server = subprocess.Popen([program(), "serve", "--state", state, "--listen", "127.0.0.1:0", "--pilots", "1"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            service = os.path.join(state, ".fairway", "service")
            for _line in server.stderr:
                if os.path.exists(service):
                    break
            for runs, at in enumerate((state, service)):
                with fairway.Executor(server=at, python=__import__("sys").executable) as executor:
                    self.assertEqual(executor.submit(calls.square, 5).result(), 25)
                    made = executor.submit(calls.make, "hello").result()
                    self.assertEqual(executor.client.read(made["made"].lfn), b"hello")
                    with self.assertRaises(KeyError):
                        executor.submit(calls.fail, 1).result()
                    # Over 48 kB, and over one part: the call goes by a file, its result comes by one.
                    for size in (100_000, 9_000_000):
                        large = os.urandom(size)
                        self.assertEqual(executor.submit(bytes.swapcase, large).result(), large.swapcase())
                        self.assertEqual(executor.submit(bytes.swapcase, large).result(), large.swapcase())
                    kept = os.path.join(state, ".fairway", "uploads")
                    self.assertEqual(sum(len(names) for _, _, names in os.walk(kept)), 2 * (runs + 1))
            self.assertEqual(len(fairway.Service(service).runs()), 2)
            with fairway.Executor(server=state, python=self._python_of_another_version()) as executor:
                refused = "the call was made by Python .* is 3.9: let python= of the Executor"
                for _ in range(2):  # also once that is known
                    with self.assertRaisesRegex(concurrent.futures.BrokenExecutor, refused):
                        executor.submit(calls.square, 5).result()
                self.assertEqual([job["step"] for job in executor.client.call("ListJobs")["jobs"]], ["python_version"])
        finally:
            server.terminate()
            server.communicate()

    def _python_of_another_version(self):
        """An interpreter that says so of itself."""
        with open(os.path.join(self.folder, "sitecustomize.py"), "w") as f:
            f.write("import sys\nsys.version_info = (3, 9, 0, 'final', 0)\n")
        python = os.path.join(self.folder, "python")
        with open(python, "w") as f:
            f.write(f"#!/bin/sh\nPYTHONPATH={self.folder} exec {sys.executable} \"$@\"\n")
        os.chmod(python, 0o755)
        return python

    def test_without_shutdown(self):
        text = ("import calls, fairway\n"
                "executor = fairway.Executor(1)\n"
                "print(executor.client.location)\n"
                "executor.submit(calls.square, 3).add_done_callback(lambda done: print(done.result()))\n")
        paths = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))
        done = subprocess.run([sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": paths}, timeout=120,
                              stdout=subprocess.PIPE, text=True, check=True)
        folder, result = done.stdout.split()
        self.assertEqual(result, "9")
        self.assertFalse(os.path.exists(folder))  # and so its server has ended

    @thorough
    def test_a_call_ends_nothing_but_itself(self):
        with fairway.Executor(2) as executor:
            list(executor.map(calls.square, range(10)))
            others = [executor.submit(calls.square, x) for x in range(40)]
            left, exited = executor.submit(calls.leave, 0), executor.submit(calls.exit_by, 0)
            kept = executor.submit(calls.keep_thread, 5)  # whose thread nobody waits for
            self.assertEqual([other.result() for other in others], [x * x for x in range(40)])
            self.assertIn("returned nothing", left.exception().reason)
            self.assertIsInstance(exited.exception(), SystemExit)
            self.assertEqual(kept.result(), 5)

    def test_a_file_that_is_not_of_the_call_stays(self):
        path = os.path.join(self.folder, "mine")
        with open(path, "w") as f:
            f.write("mine")
        with fairway.Executor(1) as executor:
            for given in (executor.submit(calls.give, path), executor.submit(calls.give_back, fairway.File(path))):
                self.assertEqual(given.result().read_text(), "mine")
            given.result().download(path + "2")
            executor.client.download(given.result().lfn, path + "3")
        for copy in ("", "2", "3"):
            with open(path + copy) as f:
                self.assertEqual(f.read(), "mine")

    def test_cancelled_futures_are_done(self):
        with fairway.Executor(1) as executor:
            futures = [executor.submit(calls.wait_for, os.path.join(self.folder, "never")) for _ in range(3)]
            self.assertTrue(until(futures[0].running))
            self.assertFalse(futures[2].running())
            self.assertEqual([future.cancel() for future in futures], [True] * 3)
            self.assertEqual(len(concurrent.futures.wait(futures, timeout=60).done), 3)
            self.assertEqual(len(list(concurrent.futures.as_completed(futures, timeout=60))), 3)
        self.assertFalse(futures[0].running())

    def test_remembered_calls_that_are_cancelled(self):
        gate = os.path.join(self.folder, "gate")
        with fairway.Executor(1, remember=True) as executor:
            first, second = executor.submit(calls.wait_for, gate), executor.submit(calls.wait_for, gate)
            self.assertTrue(second.cancel())
            self.assertTrue(until(first.running))
            self.assertTrue(first.cancel())
            again = executor.submit(calls.wait_for, gate)
            open(gate, "w").close()
            self.assertTrue(again.result())

    @thorough
    def test_options_of_calls(self):
        with fairway.Executor(1) as executor:
            short = executor.options(timeout=0.5, needs={"memory": "100MB"}).submit(calls.wait_for, "never")
            self.assertIsInstance(short.exception(), fairway.JobFailed)
            there = executor.options(variables={"GREETING": "hello"}).submit(os.getenv, "GREETING")
            self.assertEqual(there.result(), "hello")
            tries = os.path.join(self.folder, "tries")
            tried = executor.options(retries=1, priority=3).submit(calls.append_and_fail, tries)
            self.assertIsInstance(tried.exception(), KeyError)
            with open(tries) as f:
                self.assertEqual(f.read(), "tried\n" * 2)
            job = executor.client.call("ShowJob", {"job": tried.job})
            self.assertEqual(job["priority"], 3)
            found = list(executor.map(calls.square, range(9), chunksize=2, buffersize=2))
            self.assertEqual(found, [x * x for x in range(9)])
            stream = executor.map(calls.square, iter(int, 1), buffersize=1)
            self.assertEqual(next(stream), 0)
            stream.close()
            with self.assertRaises(TimeoutError):
                next(executor.map(calls.wait_for, ["never"], timeout=0.1))
            versions, python = executor.versions(), platform.python_version()
            self.assertEqual((versions["client"], versions["workers"], versions["python"]),
                             (fairway.__version__, python, python))
            self.assertTrue(versions["server"] and versions["server"] == versions["program"])

    def test_initializer(self):
        with fairway.Executor(1, initializer=calls.begin, initargs=("once",)) as executor:
            list(executor.map(calls.square, range(4)))  # now it is known how long calls take
            found = [executor.submit(calls.begun) for _ in range(20)]
            self.assertEqual([future.result()[0] for future in found], [["once"]] * 20)
            other = executor.options(initializer=calls.begin, initargs=("other",))
            self.assertEqual(other.submit(calls.begun).result()[0], ["other"])
            wrong = executor.options(initializer=calls.begin, initargs=(None,)).submit(calls.begun)
            self.assertEqual(wrong.exception().args, ("no word",))
            with self.assertRaises(TypeError):
                executor.options(initializer="begin")

    def test_managers_of_multiprocessing(self):
        with multiprocessing.Manager() as manager, fairway.Executor(1) as executor:
            shared = manager.dict()
            back = executor.submit(calls.put, shared, "a").result()  # also what comes back is the same dictionary
            self.assertEqual((shared["a"], len(back)), (back["a"], 1))

    def test_lines_of_functions_that_are_sent_by_value(self):
        text = "def raises():\n    raise KeyError(1)  # here\n"
        path = os.path.join(self.folder, "program.py")
        with open(path, "w") as f:
            f.write(text)
        space = {"__name__": "__main__"}
        exec(compile(text, path, "exec"), space)
        with fairway.Executor(1) as executor:
            error = executor.submit(space["raises"]).exception()
        self.assertIn("raise KeyError(1)  # here", str(error.__cause__))

    def test_versions_of_python_are_compared_before_a_call_is_sent(self):
        other = os.path.join(self.folder, "python")
        with open(other, "w") as f:
            f.write("#!/bin/sh\necho 3.9\n")
        os.chmod(other, 0o755)
        for python, words in ((other, "is Python 3.9, which cannot read calls of this Python 3"),
                              ("/nowhere/python", "is no interpreter")):
            with self.assertRaisesRegex(ValueError, words):
                fairway.Executor(1, python=python)

    def test_disk_does_not_grow_with_calls(self):
        with fairway.Executor(1, folder=self.folder, together=False) as executor:
            large = b"x" * 300_000

            def stored():
                return sum(len(names) for place, _, names in os.walk(self.folder)
                           if "-calls" in place or "/storage" in place)

            executor.submit(len, large).result()
            self.assertTrue(until(lambda: not stored()))
            before = stored()
            self.assertEqual(list(executor.map(len, [large] * 10)), [len(large)] * 10)
            self.assertTrue(until(lambda: stored() <= before))  # soon after, what was read is removed

    def test_records_that_have_gone(self):
        for number, within in enumerate(("", ".fairway")):
            folder = os.path.join(self.folder, str(number))
            gone = os.path.join(folder, within)

            def removed(path=gone):
                shutil.rmtree(path, ignore_errors=True)  # the pilot, which is about to end, may still write
                return not os.path.exists(path)

            with self.subTest(within), fairway.Executor(1, folder=folder) as executor:
                waiting = executor.submit(calls.wait_for, os.path.join(self.folder, "never"))
                self.assertTrue(until(waiting.running))
                run = executor._queue.run
                with run._starting:  # no server is started while they are removed
                    run._server.process.kill()
                    run._server.process.wait()
                    self.assertTrue(until(removed))
                self.assertIsInstance(waiting.exception(60), concurrent.futures.BrokenExecutor)

    def test_broken(self):
        with tempfile.TemporaryDirectory() as inside, unittest.mock.patch("tempfile.tempdir", inside):
            with self.assertRaises(fairway.FairwayError):
                fairway.Executor(1, site="nowhere")
            self.assertEqual(os.listdir(inside), [])
        with self.assertRaises(fairway.FairwayError) as caught:
            fairway.Executor(1, folder=self.folder, options=["--no-such-flag"])
        self.assertIn("no-such-flag", str(caught.exception))
        with self.assertRaises(ValueError):
            fairway.Executor(1, needs={"memory": "lots"})


class OtherLibrariesTest(unittest.TestCase):
    def test_joblib_goes_on_after_a_generator_that_was_given_up(self):
        try:
            import joblib
        except ImportError:
            self.skipTest("joblib is not installed")
        import fairway.joblib

        fairway.joblib.register()
        before = len(fairway.joblib._executors)
        with joblib.parallel_config(backend="fairway", n_jobs=2):
            for result in joblib.Parallel(return_as="generator")(joblib.delayed(calls.square)(i) for i in range(200)):
                if result == 9:
                    break
            self.assertEqual(sum(joblib.Parallel()(joblib.delayed(calls.square)(i) for i in range(10))), 285)
        self.assertLessEqual(len(fairway.joblib._executors), before + 1)

    def test_joblib(self):
        try:
            import joblib
        except ImportError:
            self.skipTest("joblib is not installed")
        import fairway.joblib

        fairway.joblib.register()
        with joblib.parallel_config(backend="fairway", n_jobs=2):
            self.assertEqual(joblib.Parallel()(joblib.delayed(calls.square)(x) for x in range(10)),
                             [x * x for x in range(10)])
            with self.assertRaises(KeyError):
                joblib.Parallel()(joblib.delayed(calls.fail)(x) for x in range(2))
            with self.assertRaises(pickle.PicklingError) as caught:
                joblib.Parallel()(joblib.delayed(id)(threading.Lock()) for _ in range(2))
            self.assertIsInstance(caught.exception.__cause__, TypeError)
            with joblib.parallel_config(backend="fairway", n_jobs=2, initializer=calls.begin, initargs=("word",)):
                begun = joblib.Parallel()([joblib.delayed(calls.begun)()] * 2)
            self.assertEqual([words for words, _ in begun], [["word"]] * 2)
            # One at a time is not parallel: it is the program itself that calls, as joblib says.
            self.assertEqual(joblib.Parallel(n_jobs=1)([joblib.delayed(os.getpid)()]), [os.getpid()])

    def test_dask(self):
        try:
            import dask
        except ImportError:
            self.skipTest("dask is not installed")
        from fairway.dask import scheduler

        with fairway.Executor(2) as executor:
            parts = [dask.delayed(calls.square)(x) for x in range(5)]
            total = dask.delayed(sum)(parts)
            self.assertEqual(total.compute(scheduler=scheduler(executor)), 30)
            self.assertEqual(total.compute(scheduler=executor), 30)
            with self.assertRaises(KeyError):
                dask.delayed(calls.fail)(1).compute(scheduler=scheduler(executor))
            before, chain = executor._queue.done, {f"x{k + 1}": (calls.increment, f"x{k}") for k in range(50)}
            self.assertEqual(scheduler(executor)({"x0": 0, **chain, "y": (calls.die,)}, "x50"), 50)
            self.assertLess(executor._queue.done, before + 5)  # what only follows each other is one call


class ConcurrentFuturesTest(unittest.TestCase):
    """What concurrent.futures itself expects of an executor."""

    def test_as_completed_and_wait(self):
        with fairway.Executor(2) as executor:
            futures = {executor.submit(calls.square, x): x for x in range(6)}
            for future in concurrent.futures.as_completed(futures, timeout=60):
                self.assertEqual(future.result(), futures[future] ** 2)
            done, left = concurrent.futures.wait(futures, timeout=60)
            self.assertEqual((len(done), len(left)), (6, 0))


if __name__ == "__main__":
    unittest.main()
