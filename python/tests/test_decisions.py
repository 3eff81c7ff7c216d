"""What needs no server: which calls are one job, what tells calls apart, what is pickled, and needs."""

import base64
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

import calls

import fairway
import fairway_call
from fairway import _calls, _identity
from fairway._batching import BATCH, FIRST, GATHER, HOLD, MAX_TOGETHER, Batching, following


class BatchingTest(unittest.TestCase):
    def test_first_calls_are_sent_alone_and_others_wait_until_it_is_known_how_long_they_take(self):
        batching = Batching(2)
        self.assertEqual([batching.count("f", 0, 9, 0) for _ in range(5)], [1, 1, 1, 1, 0])
        self.assertEqual(batching.count("f", 0, 9, HOLD), 1)
        self.assertTrue(batching.learn("f", 10))
        self.assertEqual(batching.count("f", 0, 9, 0), 1)

    def test_short_calls_share_jobs(self):
        batching = Batching(2)
        batching.learn("f", 1e-6)
        self.assertEqual(batching.count("f", 0, 1000, 0), MAX_TOGETHER)
        batching.shared = 4  # there are jobs for all
        self.assertEqual(batching.count("f", 0, 5, 0), 0)
        self.assertEqual(batching.count("f", 0, 5, GATHER), MAX_TOGETHER)
        self.assertFalse(batching.learn("f", 0.02))
        self.assertLess(batching.count("f", 0, 1000, 1), MAX_TOGETHER)

    def test_short_calls_wait_for_jobs_that_can_be_given_further_ones(self):
        batching = Batching(2, further=True)
        self.assertEqual([batching.count("f", 0, 9, 0) for _ in range(3)], [1, 1, 0])
        self.assertEqual([batching.count("f", 0, 9, FIRST) for _ in range(3)], [1, 1, 0])  # they do take time
        batching.learn("f", 1e-6)
        batching.shared, batching.answered = 2, 1.0
        self.assertTrue(batching.waits(1))
        self.assertFalse(batching.waits(1 + HOLD))  # what the jobs make takes long
        batching.shared = 1
        self.assertFalse(batching.waits(1))  # there is a place for one more
        self.assertFalse(Batching(0).waits(1))

    def test_calls_that_a_job_is_given(self):
        batching = Batching(2)

        def given(queued, *steps):
            share = batching.share("f", queued)
            return next((n for n, step in enumerate(steps or ("f",) * 1000) if not share.takes(step)), len(steps))

        self.assertEqual(given(100), 1)  # how long they take is not known
        batching.learn("f", 0.001)
        self.assertEqual([given(queued) for queued in (1, 60, 1000)], [10, 15, 50])
        batching.learn("g", 0.002)
        batching.learn("h", 1)
        self.assertEqual(given(1000, "f", "g", "f", "h", "f"), 3)  # also of others, if they are short
        self.assertEqual([given(9, "h"), given(9, "unknown")], [0, 0])
        batching.learn("f", 9)
        batching.learn("f", 9)
        self.assertEqual(given(9, "f", "f"), 1)

    def test_batches_of_joblib_grow_at_once_with_calls_that_take_no_time(self):
        self.assertEqual(following(1, 0), MAX_TOGETHER)
        self.assertEqual(following(MAX_TOGETHER, 1e-3), 2 * MAX_TOGETHER)
        self.assertEqual(following(1, BATCH / 10), 2)
        self.assertEqual(following(4, 2 * BATCH / 3), 6)
        self.assertEqual(following(8, BATCH), 8)
        self.assertEqual(following(8, 16 * BATCH), 1)
        self.assertEqual(following(1, 100), 1)


class IdentityTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def identity(self, text, seed="0"):
        """That of a call in a program of its own, in the folder."""
        text = f"from fairway._identity import identity\n{textwrap.dedent(text)}\nprint(identity([call], ()))\n"
        done = subprocess.run([sys.executable, "-c", text], cwd=self.folder, env={**os.environ, "PYTHONHASHSEED": seed},
                              stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    def test_order_of_sets_does_not_count(self):
        text = "call = (len, ({'a', 'b', ('c', frozenset('defgh'))},), {'x': set('jklmnopq')})"
        self.assertEqual(self.identity(text, "1"), self.identity(text, "2"))
        self.assertNotEqual(self.identity(text), self.identity(text.replace("jkl", "jkL")))

    def test_sources_of_modules_count(self):
        def write(name, text):
            with open(os.path.join(self.folder, name), "w") as f:
                f.write(text)

        write("deep.py", "def g(x): return x\n")
        write("mine.py", "def f(x):\n    import deep\n    return deep.g(x)\n")
        text = "import mine; call = (mine.f, (1,), {})"
        before = self.identity(text)
        self.assertEqual(before, self.identity(text))
        write("deep.py", "def g(x): return x + 1\n")
        self.assertNotEqual(before, self.identity(text))

    def test_contents_of_files_count(self):
        path = os.path.join(self.folder, "data")
        found = []
        for text in ("one", "two", "one"):
            with open(path, "w") as f:
                f.write(text)
            found.append(_identity.identity([(calls.read, (fairway.File(path),), {})], ()))
        self.assertEqual((found[0], found[0] == found[1]), (found[2], False))

    @unittest.skipUnless(fairway_call.by_value, "cloudpickle is not installed")
    def test_neither_lines_nor_random_names_of_the_program_count(self):
        text = """
            class Box:
                def __init__(self, x): self.x = x
                def twin(self): return Box(self.x)
            def f(box): return box.twin().x in {"a", "b", "c"}
            call = (f, (Box("a"),), {})
        """
        self.assertEqual(self.identity(text, "1"), self.identity("\n\n" + textwrap.dedent(text), "2"))
        self.assertNotEqual(self.identity(text), self.identity(text.replace('"c"', '"d"')))


class PicklingTest(unittest.TestCase):
    def test_errors_files_and_clients_can_be_pickled(self):
        for value in (fairway.FairwayError("not_found", "no job"), fairway.JobFailed("it was killed", "log")):
            again = pickle.loads(pickle.dumps(value))
            self.assertEqual((type(again), str(again), vars(again)), (type(value), str(value), vars(value)))
        client = fairway.Client("/nowhere", 3)
        for value in (client, fairway.Run("/nowhere", 3), fairway.Service("/nowhere")):
            self.assertEqual(repr(pickle.loads(pickle.dumps(value))), repr(value))
        self.assertEqual(pickle.loads(pickle.dumps(fairway.File("a", "lfn", client))), fairway.File("a", "lfn"))

    def test_folders_of_the_program_come_before_those_of_python_and_others_after(self):
        with unittest.mock.patch.object(_calls, "_BEGAN", "/began"):  # it has gone elsewhere since
            line = _calls.search_path(("", "here", *(p for p in sys.path if "python3" in p), "/later"), "/work")
        before, _, after = line.decode().rstrip("\n").partition("\0\0")
        self.assertEqual(before.split("\0"), ["/work", "/began", "/work/here", "/began/here"])
        self.assertEqual(after.split("\0")[-1], "/later")

    def test_other_version_of_python_is_refused_in_words(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", _calls.bootstrap(), "made", "2.7", "", "", "bm8gcGlja2xl"],
                                  cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
        told = done.stderr.partition(fairway_call.MARK)[2].split("\n")[0]
        error = _calls.unpickled(base64.b64decode(told), "")
        self.assertIsInstance(error, fairway.JobFailed)
        self.assertRegex(error.reason, r"^the call was made by Python 2\.7, and .* is 3\.\d+: let python=")

    def test_another_fairway_call_on_the_node_does_not_count(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "fairway_call.py"), "w") as f:
                f.write("CHECKSUM = 1\ndef main(argv): print('wrong')\n")
            data = _calls.Encoded([(calls.square, (3,), {})], None).argument()
            version = "{}.{}".format(*sys.version_info)
            words = [sys.executable, "-c", _calls.bootstrap(), "made", version, "", "", data]
            subprocess.run(words, cwd=folder, check=True)
            with open(os.path.join(folder, "made", "value"), "rb") as f:
                self.assertEqual(fairway_call.loads(f.read()), [9])


if __name__ == "__main__":
    unittest.main()
