"""Workflow, Run and Service against a real Fairway."""

import os
import tempfile
import unittest

import fairway
from fairway._resources import resources, seconds, size


def content(path):
    with open(path) as f:
        return f.read()


class WorkflowTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "in"))
        for name in "abc":
            with open(os.path.join(self.folder, "in", name + ".txt"), "w") as f:
                f.write(name * 3)

    def workflow(self):
        return (fairway.Workflow("upper").input("texts", files="in/{x}.txt", as_="texts/{x}.txt")
                .step("up", each="texts/{x}.txt", writes="up/{x}.txt", command='tr a-z A-Z <"$in" >"$out"'))

    def test_run(self):
        run = self.workflow().run(self.folder, pilots=1).wait()
        jobs = run.jobs()
        self.assertEqual([(job["step"], job["state"]) for job in jobs], [("up", "done")] * 3)
        self.assertEqual(run.jobs(state="failed"), [])
        self.assertEqual({file["lfn"]: content(file["path"]) for file in run.results},
                         {f"up/{x}.txt": x.upper() * 3 for x in "abc"})
        self.assertEqual(run.explain("up/a"), ["its outputs are committed"])
        again = fairway.Run(self.folder)
        self.assertEqual(again.jobs(), jobs)
        with self.assertRaisesRegex(fairway.FairwayError, "no job .*nope"):
            again.explain("nope")
        again.retry()  # as the command, also when nothing runs
        with self.assertRaisesRegex(fairway.FairwayError, "nothing runs in .*; start it"):
            again.stop()
        self.workflow().run(self.folder).wait()  # nothing is left to do

    def test_no_run(self):
        with self.assertRaisesRegex(fairway.FairwayError, "no workflow was run in"):
            fairway.Run(self.folder).jobs()
        with self.assertRaisesRegex(fairway.FairwayError, "there is no folder .*nowhere$"):
            fairway.Service(os.path.join(self.folder, "nowhere")).runs()

    def test_failure(self):
        workflow = self.workflow().step("bad", merge="up/{x}.txt", writes="bad.txt", retry={"attempts": 1},
                                        command="echo what was said; exit 3")
        run = workflow.run(self.folder, pilots=1)
        with self.assertRaises(fairway.FairwayError) as caught:
            run.wait()
        self.assertIn("exit code 3", str(caught.exception))
        self.assertEqual(run.logs("bad"), "what was said\n")
        with self.assertRaises(fairway.FairwayError) as caught:
            fairway.Workflow("w").step("s", comand="x").run(self.folder)
        self.assertIn("comand", str(caught.exception))

    def test_needs(self):
        self.assertEqual((size("4GB"), size("1MiB"), size(5)), (4_000_000_000, 1 << 20, 5))
        self.assertEqual((seconds("1h30m"), seconds("90s"), seconds(2)), (5400, 90, 2))
        self.assertEqual(resources({"cpus": 0.5, "memory": "1GB", "time": "2m", "gpu": 1}),
                         {"milliCpus": 500, "memoryBytes": 10**9, "time": "120s", "countable": {"gpu": 1}})
        self.assertEqual(resources({"gpu": 0.29}), {"gpuShare": 290})
        with self.assertRaisesRegex(ValueError, "memry.*'1GB' is no whole number"):
            resources({"memry": "1GB"})
        for wrong in ("lots", "4XB"):
            self.assertRaises(ValueError, size, wrong)
        self.assertRaises(ValueError, seconds, "soon")


if __name__ == "__main__":
    unittest.main()
