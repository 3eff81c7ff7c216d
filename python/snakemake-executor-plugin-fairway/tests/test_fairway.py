"""What Snakemake's own tests for executors leave out, each with an unchanged Snakefile."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

from fairway import Client, Run


class Workflow:
    """A folder with a Snakefile."""

    def __init__(self, folder, snakefile, **files):
        self.folder = folder
        for name, text in {"Snakefile": snakefile, **files}.items():
            (folder / name.replace("__", ".")).write_text(textwrap.dedent(text))

    def start(self, *flags):
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--executor", "fairway", "--jobs", "10", "--fairway-run", self.run, *flags],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            # Tests that a shell runs in the background ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def finish(self, process, code=0):
        said, _ = process.communicate(timeout=300)
        assert process.returncode == code, said
        return said

    @property
    def run(self):
        return str(self.folder / "run")

    def jobs(self):
        return Run(self.run).jobs()

    def text(self, name):
        return (self.folder / name).read_text()

    def wait_for(self, name):
        deadline = time.monotonic() + 120
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline, f"{name} does not come"
            time.sleep(0.02)


def test_what_rules_may_say(tmp_path):
    """Threads, resources, script, params, logs, temp, checkpoints, groups and environment variables."""
    w = Workflow(tmp_path, """
        envvars: "OF_THE_USER"
        rule all:
            input: "sum.txt", "grouped.txt", "scripted.txt"
        checkpoint parts:
            output: directory("parts")
            shell: "mkdir {output} && for i in 1 2 3; do echo $i > {output}/$i.txt; done"
        rule double:
            input: "parts/{i}.txt"
            output: temp("double/{i}.txt")
            log: "logs/{i}.log"
            threads: 2
            resources: mem_mb=300, runtime=5
            shell: "echo {threads} $OF_THE_USER > {log}; echo $(( 2 * $(cat {input}) )) > {output}"
        def doubles(wildcards):
            folder = checkpoints.parts.get().output[0]
            return expand("double/{i}.txt", i=glob_wildcards(folder + "/{i}.txt").i)
        rule sum:
            input: doubles
            output: "sum.txt"
            shell: "cat {input} | paste -sd+ | bc -l > {output} || awk '{{s+=$1}} END {{print s}}' {input} > {output}"
        rule first:
            output: "first.txt"
            group: "both"
            shell: "echo first > {output}"
        rule second:
            input: "first.txt"
            output: "grouped.txt"
            group: "both"
            shell: "cat {input} > {output}; echo second >> {output}"
        rule scripted:
            output: "scripted.txt"
            params: word="said"
            script: "script.py"
        """, script__py="""
        with open(snakemake.output[0], "w") as f:
            f.write(snakemake.params.word)
        """)
    w.finish(subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--executor", "fairway", "--jobs", "10", "--fairway-run", w.run], cwd=w.folder,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "OF_THE_USER": "me"},
    ))
    assert w.text("sum.txt").strip() == "12"
    assert w.text("grouped.txt") == "first\nsecond\n"
    assert w.text("scripted.txt") == "said"
    assert w.text("logs/2.log") == "2 me\n"
    assert not list((w.folder / "double").glob("*.txt"))
    jobs = w.jobs()
    assert sorted(job["step"] for job in jobs) == ["both_first_second", *["double"] * 3, "parts", "scripted", "sum"]
    double = next(job["id"] for job in jobs if job["step"] == "double")
    # The run has ended; its records say what the job needed.
    detail = subprocess.run([os.path.join(os.environ["FAIRWAY_BIN"], "fairway"), "-C", w.run, "show", str(double), "--json"],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    for needed in ('"milli_cpus": 2000', '"memory_bytes": 500000000', '"time": 300'):
        assert needed in detail


_LOADED_LATE = """
import sys
import snakemake_executor_plugin_fairway.warm
before = set(sys.modules)
sys.argv = ["snakemake", *"--mode remote --target-jobs one: --allowed-rules one --cores 1 --force --nolock".split()]
from snakemake.cli import main
try:
    main()
finally:
    print("loaded late:", *sorted(set(sys.modules) - before))
"""


def test_worker_has_loaded_all(tmp_path):
    """A job loads nothing that its worker could have loaded."""
    w = Workflow(tmp_path, """
        rule one:
            output: "made"
            shell: "touch {output}"
    """)
    said = w.finish(subprocess.Popen([sys.executable, "-c", _LOADED_LATE], cwd=tmp_path, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True))
    assert (tmp_path / "made").exists(), said
    assert re.search(r"^loaded late:(.*)$", said, re.MULTILINE).group(1) == "", said


def test_failures(tmp_path):
    """Snakemake tries again, with what grows by the attempt; an error has what the job printed."""
    w = Workflow(tmp_path, """
        rule all:
            input: "again.txt", "greedy.txt"
        rule again:
            output: "again.txt"
            retries: 2
            resources: mem_mb=lambda wildcards, attempt: attempt * 100
            shell: "echo {resources.mem_mb} >> attempts.txt; [ {resources.mem_mb} = 200 ] && touch {output}"
        rule greedy:
            output: "greedy.txt"
            resources: mem_mb=100
            shell: "echo asking for much; python3 -c 'x = bytearray(2 << 30)'; touch {output}"
        """)
    said = w.finish(w.start("--keep-going", "--show-failed-logs"), code=1)
    assert w.text("attempts.txt").split() == ["100", "200"]
    assert (w.folder / "again.txt").exists() and not (w.folder / "greedy.txt").exists()
    assert re.search("more than its 300(.0)? MB of memory", said), said
    assert "asking for much" in said


def test_open_run_keeps_its_pilots(tmp_path):
    """Who asks for a site is told that the run that is open has pilots of its own."""
    w = Workflow(tmp_path, """
        rule all:
            output: "made.txt"
            shell: "touch {output}"
        """)
    fairway = [os.path.join(os.environ["FAIRWAY_BIN"], "fairway"), "-C", w.run]
    subprocess.run([*fairway, "open", "--pilots", "1", "--detach"], check=True)
    try:
        assert "is open already" not in w.finish(w.start())
        said = w.finish(w.start("--forceall", "--fairway-site", "cluster"))
        assert "is open already, with pilots of its own" in said
        assert f"fairway -C {w.run} close" in said
    finally:
        subprocess.run([*fairway, "close"], check=True)


def test_refused(tmp_path):
    """A rule that asks for too much is told of the flags of Snakemake."""
    w = Workflow(tmp_path, """
        rule all:
            output: "made.txt"
            threads: 9999
            shell: "touch {output}"
        """)
    said = w.finish(w.start(), code=1)
    assert "Fairway refuses this job" in said and "--max-threads N" in said


def test_cancel(tmp_path):
    """What runs ends with Ctrl-C. (After SIGTERM Snakemake itself waits for it.)"""
    w = Workflow(tmp_path, """
        rule all:
            input: "never.txt"
        rule long:
            output: "never.txt"
            shell: "echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000"
        """)
    process = w.start()
    w.wait_for("pid")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert not os.path.exists(f"/proc/{w.text('pid').strip()}")
    assert [job["state"] for job in w.jobs()] == ["cancelled"]


def test_server_is_killed(tmp_path):
    """Jobs go on, and Snakemake with them."""
    w = Workflow(tmp_path, """
        rule all:
            input: "done.txt"
        rule slow:
            output: "slow.txt"
            shell: "touch begun; while [ ! -e gate ]; do sleep 0.05; done; echo once >> {output}"
        rule done:
            input: "slow.txt"
            output: "done.txt"
            shell: "cp {input} {output}"
        """)
    process = w.start()
    w.wait_for("begun")
    os.kill(int(w.text("run/.fairway/lock")), signal.SIGKILL)
    (w.folder / "gate").touch()
    w.finish(process)
    assert w.text("done.txt") == "once\n"


def test_snakemake_is_killed(tmp_path):
    """The next one waits for the job that goes on, and does not run it again."""
    w = Workflow(tmp_path, """
        rule all:
            input: "slow.txt"
        rule slow:
            output: "slow.txt"
            shell: "echo run >> times; touch begun; while [ ! -e gate ]; do sleep 0.05; done; touch {output}"
        """)
    process = w.start()
    w.wait_for("begun")
    process.kill()
    process.communicate()
    subprocess.run([sys.executable, "-m", "snakemake", "--unlock"], cwd=w.folder, check=True, capture_output=True)
    process = w.start()
    before = ""
    for line in process.stdout:
        before += line
        if "goes on, and is waited for" in line:
            break
    assert "goes on" in before, before
    (w.folder / "gate").touch()
    w.finish(process)
    assert w.text("times") == "run\n"
    Client(w.run).call("CloseInput")  # the run of a Snakemake that was killed stays open
