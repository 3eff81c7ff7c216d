"""Jobs that are given further calls: the two ends of a channel, and what becomes of calls when it breaks."""

import concurrent.futures
import io
import os
import socket
import threading
import unittest
from unittest import mock

import calls

import fairway
import fairway_call
from fairway import _calls
from fairway._channels import Channel, Channels
from fairway._queue import Queue


class ChannelTest(unittest.TestCase):
    """A job in a thread."""

    def answer_by(self, answers):
        """Channels whose jobs are answered so, and what those have sent. A None breaks the connection."""
        sent = []

        def on_answer(channel, message):
            sent.append((channel.job, message))
            answer = answers.pop(0)
            if answer is None:
                raise OSError
            channel.send(answer)

        channels = Channels(lambda channel: channel.job != "unknown", on_answer)
        self.addCleanup(channels.close)
        return channels, sent

    def make(self, channels, *numbers, job="job"):
        """What a job of calls leaves in its file."""
        f = io.BytesIO()
        data = [_calls.Encoded([(calls.square, (n,), {})], None).argument() for n in numbers]
        fairway_call.several("made", data, 60, fairway_call.Channel(channels.name, job), f)
        return f

    def results(self, f):
        batch, index = fairway_call.read_index(f)
        found = []
        for at, _, _ in index:
            f.seek(at)
            found += fairway_call.Unpickler(f, str).load()
        return batch, found

    def test_results_are_taken_and_further_calls_given(self):
        data = [bytes(_calls.Encoded([(calls.square, (n,), {})], None).data) for n in (5, 6)]
        channels, sent = self.answer_by([fairway_call.pickle.dumps(data), b""])
        self.assertEqual(self.make(channels, 3, 4).getvalue(), b"")
        self.assertEqual([(job, self.results(io.BytesIO(text))) for job, text in sent],
                         [("job", (0, [9, 16])), ("job", (1, [25, 36]))])

    def test_results_that_are_not_taken_stay(self):
        for job, jobs in (("job", ["job"]), ("unknown", [])):
            channels, sent = self.answer_by([None])
            self.assertEqual(self.results(self.make(channels, 3, 4, job=job)), (0, [9, 16]))
            self.assertEqual([job for job, _ in sent], jobs)

    def test_errors_and_long_results_stay(self):
        channels, sent = self.answer_by([])
        with mock.patch("fairway_call.MAX_ANSWER", 10):
            self.assertEqual(self.results(self.make(channels, 3)), (0, [9]))
        f = io.BytesIO()
        data = [_calls.Encoded([(calls.fail, (n,), {})], None).argument() for n in (1, 2)]
        fairway_call.several("made", data, 60, fairway_call.Channel(channels.name, "job"), f)
        self.assertEqual([bool(error) for _, error, _ in fairway_call.read_index(f)[1]], [True, True])
        self.assertEqual(sent, [])

    def test_nobody_and_others_are_not_believed(self):
        channels, sent = self.answer_by([])
        with mock.patch("fairway_call.of_this_user", return_value=False):
            self.assertEqual(self.results(self.make(channels, 3)), (0, [9]))
        channels.close()
        self.assertIsNone(fairway_call.Channel(channels.name, "job").socket)
        self.assertEqual(sent, [])

    def test_messages_are_bounded(self):
        here, there = socket.socketpair()
        with here, there:
            here.sendall(b"\0\0\0\0\0\0\0\x0bfairway")
            with self.assertRaisesRegex(OSError, "11 bytes is too long"):
                fairway_call.receive(there, 10)

    def test_users_that_a_container_does_not_know_are_not_believed(self):
        here, there = socket.socketpair()
        with here, there:
            self.assertTrue(fairway_call.of_this_user(here))
            with mock.patch("fairway_call._UNKNOWN_USER", os.geteuid()):
                self.assertFalse(fairway_call.of_this_user(here))

    def test_a_channel_that_was_lost_is_given_back_also_if_a_fork_has_it(self):
        lost = threading.Event()
        channels = Channels(lambda channel: True, lambda channel, message: channel.close() or lost.set())
        self.addCleanup(channels.close)
        end = fairway_call.Channel(channels.name, "job")
        self.addCleanup(end.close)
        copy = end.socket.dup()  # as a fork has it
        self.addCleanup(copy.close)
        fairway_call.send(end.socket, b"answer")
        self.assertTrue(lost.wait(60))
        with self.assertRaisesRegex(OSError, "has ended"):
            fairway_call.receive(end.socket, 10)

    def test_a_job_that_stops_within_a_message_keeps_no_other_waiting(self):
        patience = mock.patch("fairway_call.PATIENCE", 600)
        patience.start()
        self.addCleanup(patience.stop)
        told = threading.Event()

        def on_answer(channel, message):
            channel.send(bytes(8 << 20) if channel.job == "deaf" else b"")  # more than a socket takes
            if channel.job == "job":
                told.set()

        channels = Channels(lambda channel: True, on_answer)
        self.addCleanup(channels.close)
        mute, deaf, job = (fairway_call.Channel(channels.name, name) for name in ("mute", "deaf", "job"))
        for end in (mute, deaf, job):
            self.addCleanup(end.close)
        mute.socket.sendall(b"\0\0\0")
        fairway_call.send(deaf.socket, b"answer")
        fairway_call.send(job.socket, b"answer")
        self.assertTrue(told.wait(60))
        self.assertEqual(fairway_call.receive(job.socket, 10), b"")
        self.assertEqual(len(fairway_call.receive(deaf.socket, 8 << 20)), 8 << 20)  # once it listens
        mute.socket.sendall(b"\0\0\0\0\0")  # and an empty answer is whole
        self.assertEqual(fairway_call.receive(mute.socket, 10), b"")

    def test_results_of_a_job_that_ended_its_process(self):
        for text in (b"", b"x", 40 * b"x", bytes(8) + b"fairway."):
            with self.assertRaisesRegex(fairway.JobFailed, "ended its process"):
                _calls.index_of(io.BytesIO(text))


class FurtherCallsTest(unittest.TestCase):
    def test_short_calls_are_few_jobs(self):
        with fairway.Executor(2) as executor:
            list(executor.map(calls.square, range(10)))
            futures = [executor.submit(calls.square, x) for x in range(1000)]
            self.assertEqual([future.result(60) for future in futures], [x * x for x in range(1000)])
            self.assertLess(len({future.job for future in futures}), 100)
            self.assertEqual(len(executor.submit(bytes, 2 << 20).result(60)), 2 << 20)
            large = [bytes([x]) * 100_000 for x in range(50)]  # they do not stand in a job
            self.assertEqual(list(executor.map(bytes, large, timeout=60)), large)
            self.assertEqual({thread.name for thread in threading.enumerate()} & {"fairway-channels"},
                             {"fairway-channels"})
        self.assertNotIn("fairway-channels", {thread.name for thread in threading.enumerate()})

    def test_calls_of_several_functions_share_jobs(self):
        with fairway.Executor(2) as executor:
            kinds = (calls.square, abs, str)
            for kind in kinds:
                list(executor.map(kind, range(4)))
            futures = [executor.submit(kind, x) for x in range(100) for kind in kinds]
            self.assertEqual([future.result(60) for future in futures], [k(x) for x in range(100) for k in kinds])
            self.assertLess(len({future.job for future in futures}), 100)

    def test_calls_of_a_higher_priority_do_not_wait_for_others(self):
        order = []
        with fairway.Executor(1) as executor:
            list(executor.map(calls.nap, [0.01] * 4))
            futures = [executor.submit(calls.nap, 0.01) for _ in range(200)]
            futures.append(executor.options(priority=1).submit(calls.square, 3))
            for future in futures:
                future.add_done_callback(order.append)
            concurrent.futures.wait(futures, 60)
        self.assertLess(order.index(futures[-1]), 100)

    def test_each_call_has_a_folder_of_its_own(self):
        with fairway.Executor(2) as executor:
            self.assertEqual(list(executor.map(calls.write_own, range(100), timeout=60)), list(range(100)))

    def test_a_fork_that_returns_has_no_result(self):
        with fairway.Executor(2) as executor:
            self.assertEqual(list(executor.map(calls.fork, range(20), timeout=60)), list(range(20)))

    def test_calls_that_a_job_did_not_get_are_made_by_another(self):
        def lose(channel, message):
            channel.connection.shutdown(socket.SHUT_RDWR)

        with mock.patch.object(Channel, "send", lose), fairway.Executor(2) as executor:
            list(executor.map(calls.square, range(4)))
            self.assertEqual(list(executor.map(calls.square, range(200), timeout=60)), [x * x for x in range(200)])

    def test_cancelling_what_was_answered_ends_no_job_that_goes_on(self):
        answered, gate, give = threading.Event(), threading.Event(), Queue._give_results

        def give_late(*args):
            answered.set()
            gate.wait(60)
            give(*args)

        with fairway.Executor(1) as executor:
            executor.submit(calls.square, 1).result(60)
            with mock.patch.object(Queue, "_give_results", give_late):
                late = executor.submit(calls.square, 2)
                self.assertTrue(answered.wait(60))
                self.assertTrue(late.cancel())
                others = [executor.submit(calls.square, x) for x in range(3)]
                gate.set()
                self.assertEqual([other.result(60) for other in others], [0, 1, 4])

    def test_jobs_that_are_cancelled_are_forgotten(self):
        with fairway.Executor(1) as executor:
            futures = [executor.submit(calls.wait_for, "never") for _ in range(2)]
            self.assertEqual([future.cancel() for future in futures], [True, True])
            self.assertEqual(executor.submit(calls.square, 3).result(60), 9)
            self.assertLessEqual(len(executor._queue._sent), 1)  # that which has just answered

    def test_jobs_of_another_user_get_no_further_calls(self):
        with mock.patch("fairway_call.of_this_user", return_value=False), fairway.Executor(2) as executor:
            self.assertEqual(list(executor.map(calls.square, range(50), timeout=60)), [x * x for x in range(50)])


if __name__ == "__main__":
    unittest.main()
