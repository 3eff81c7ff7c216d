"""Workflow, Run and Service against a real Fairway."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest

import fairway
from fairway._program import program
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

    def test_run_that_is_followed(self):
        gate = os.path.join(self.folder, "gate")
        workflow = fairway.Workflow("held").step("hold", writes="made/held.txt", command=held_by(gate))
        with workflow.run(self.folder, pilots=1) as run:
            with self.assertRaisesRegex(TimeoutError, "has not ended after 0.1 seconds"):
                run.wait(timeout=0.1)
            self.assertIn("<td>hold</td><td>0</td><td>1</td>", run._repr_html_())
            open(gate, "w").close()
            with contextlib.redirect_stderr(io.StringIO()) as told:
                run.wait(progress=True, timeout=600)
        self.assertRegex(told.getvalue(), r"held: [01]/1 jobs, [01] running")
        self.assertEqual(run.logs("hold"), "done\n")  # also when no server runs
        with self.assertRaisesRegex(fairway.FairwayError, "nothing runs in"):
            run.download("made/held.txt", os.path.join(self.folder, "copy"))
        self.assertEqual(os.listdir(os.path.join(self.folder, "results/made")), ["held.txt"])

    def test_keys_that_stand_twice(self):
        with self.assertRaisesRegex(ValueError, "steps has two of the name 'up'"):
            self.workflow().step("up")

    def test_program_is_not_installed(self):
        with tempfile.TemporaryDirectory() as empty:
            text = "import sys; sys.path[:0] = [sys.argv[1]]\nimport fairway\nprint(fairway.Client().versions())\n" \
                   "try: fairway.Workflow('w').run()\nexcept fairway.FairwayError as e: print(e)"
            source = os.path.dirname(os.path.dirname(fairway.__file__))
            interpreter = os.path.join(empty, "python")
            os.symlink(os.path.realpath(sys.executable), interpreter)
            done = subprocess.run([interpreter, "-c", text, source], cwd=empty, env={"PATH": empty}, text=True,
                                  stdout=subprocess.PIPE, check=True)
        self.assertIn("'program': ''", done.stdout)
        self.assertIn("the program fairway is not installed: put it on the PATH", done.stdout)


def held_by(gate):
    """A command that ends when there is a file."""
    return f'until [ -e "{gate}" ]; do sleep 0.02; done; echo done | tee "$out"'


class ServiceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        server = subprocess.Popen(
            [program(), "serve", "--state", self.folder, "--listen", "127.0.0.1:0", "--pilots", "1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.terminate)
        self.file = os.path.join(self.folder, ".fairway", "service")
        for _line in server.stderr:
            if os.path.exists(self.file):
                break

    def test_runs(self):
        workflow = (fairway.Workflow("upper").input("texts", files="in/{x}.txt", as_="texts/{x}.txt")
                    .step("up", each="texts/{x}.txt", writes="up/{x}.txt", command='tr a-z A-Z <"$in" | tee "$out"'))
        uploads = {f"in/{x}.txt": x.encode() * 3 for x in "ab"}
        with fairway.Service(self.file) as service:
            run = service.submit(workflow, key="first", uploads=uploads)
            self.assertEqual(service.submit(workflow, key="first", uploads=uploads).number, run.number)
            run.wait(timeout=600)
            self.assertEqual(run.logs("up/a"), "AAA")
            target = os.path.join(self.folder, "copy")
            run.download("up/", target)
            run.download("up/b.txt", os.path.join(target, "c.txt"))
            copies = {name: content(os.path.join(target, name)) for name in os.listdir(target)}
            self.assertEqual(copies, {"a.txt": "AAA", "b.txt": "BBB", "c.txt": "BBB"})
            with self.assertRaises(fairway.FairwayError):
                run.download("up/d.txt", os.path.join(target, "d.txt"))
            self.assertEqual(len(os.listdir(target)), 3)
            gate = os.path.join(self.folder, "gate")
            workflow = fairway.Workflow("held").step("hold", writes="held.txt", command=held_by(gate))
            held = service.submit(workflow.text())
            held.cancel("hold")
            held.retry("hold")
            self.assertEqual([job["name"] for job in held.jobs(step="hold")], ["hold"])
            held.stop(now=True)
            with self.assertRaises(fairway.FairwayError):
                held.wait(timeout=600)
            self.assertEqual([run["workflow"] for run in service.runs()], ["held", "upper"])
            self.assertIn("<td>upper</td>", service._repr_html_())


if __name__ == "__main__":
    unittest.main()
