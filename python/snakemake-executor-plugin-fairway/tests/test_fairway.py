"""What Snakemake's own tests for executors leave out, each with an unchanged Snakefile."""

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from snakemake.settings.types import StorageSettings

from fairway import Client, Run


class Workflow:
    """A folder with a Snakefile."""

    def __init__(self, folder, snakefile, **files):
        self.folder = folder
        self.run = str(folder / "run")
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


def test_records_of_the_one_before_are_removed(tmp_path):
    """What Snakemake keeps for itself does not grow with each that runs there, unless one was killed."""
    w = Workflow(tmp_path, """
        rule one:
            output: "{name}.txt"
            shell: "touch {output}"
    """)
    w.run = str(tmp_path / ".fairway-snakemake")
    for target in ("a.txt", "b.txt"):
        w.finish(subprocess.Popen([sys.executable, "-m", "snakemake", "--executor", "fairway", "--jobs", "1", target],
                                  cwd=w.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        assert [job["name"].partition("-")[0] for job in w.jobs()] == [f"one,name={target[0]}"]
    # One with nothing to do opens no run.
    w.finish(subprocess.Popen([sys.executable, "-m", "snakemake", "--executor", "fairway", "--jobs", "1", "b.txt"],
                              cwd=w.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    assert [job["name"].partition("-")[0] for job in w.jobs()] == ["one,name=b"]
    os.remove(os.path.join(w.run, "ended"))  # as if it was killed
    w.finish(subprocess.Popen([sys.executable, "-m", "snakemake", "--executor", "fairway", "--jobs", "1", "c.txt"],
                              cwd=w.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    assert len(w.jobs()) == 2
    assert sorted(os.listdir(w.run)) == [".fairway", "ended"]


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
        assert "is open already" in said and "--site cluster" in said
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
    said = w.finish(w.start("--cores", "9999"), code=1)
    assert "Fairway refuses this job" in said and "--max-threads N" in said


def test_immediate_submit(tmp_path):
    """Nobody would look how jobs end, and those that read what others write would not wait for them."""
    w = Workflow(tmp_path, """
        rule all:
            output: "made.txt"
            shell: "touch {output}"
        """)
    said = w.finish(w.start("--immediate-submit", "--notemp"), code=1)
    assert "Snakemake with Fairway without --immediate-submit" in said, said
    assert not (tmp_path / "made.txt").exists() and not os.path.exists(w.run)


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


_SEEDED = """
    rule all:
        input: "made.txt"
    rule make:
        input: "given.txt"
        output: "made.txt"
        params: seed=config.get("seed", 1)
        shell: "echo {params.seed} >> times; touch begun; while [ ! -e gate ]; do sleep 0.05; done; "
               "echo {params.seed} $(cat {input}) > {output}"
"""


def seeded(folder):
    """A workflow whose one job waits for the file gate."""
    folder.mkdir(parents=True, exist_ok=True)
    return Workflow(folder, _SEEDED, given__txt="1")


def kill(w, process):
    """Kill a Snakemake whose job runs, and unlock its folder as --unlock does."""
    w.wait_for("begun")
    process.kill()
    process.communicate()
    shutil.rmtree(w.folder / ".snakemake/locks")


def wait_for_no_server(w):
    deadline = time.monotonic() + 120
    while Client(w.run).answers():
        assert time.monotonic() < deadline, "the server goes on"
        time.sleep(0.02)


def wait_for_line(process, text):
    before = ""
    for line in process.stdout:
        before += line
        if text in line:
            return
    raise AssertionError(before)


@pytest.fixture
def open_run(tmp_path):
    """The folder of a run that a person has opened."""
    fairway = [os.path.join(os.environ["FAIRWAY_BIN"], "fairway"), "-C", str(tmp_path / "opened")]
    (tmp_path / "opened").mkdir()
    subprocess.run([*fairway, "open", "--pilots", "1", "--detach"], check=True, capture_output=True)
    yield str(tmp_path / "opened")
    subprocess.run([*fairway, "stop", "--now"], check=True, capture_output=True)


def test_jobs_end_with_snakemake(tmp_path):
    """What Snakemake itself has opened ends with it, however it ends, and the next one begins with nothing."""
    w = seeded(tmp_path)
    process = w.start()
    kill(w, process)
    wait_for_no_server(w)
    (w.folder / "gate").touch()
    w.finish(w.start("--config", "seed=2"))
    assert w.text("made.txt") == "2 1\n"
    assert "Nothing to be done" in w.finish(w.start("--config", "seed=2"))
    wait_for_no_server(w)


def test_job_that_goes_on_is_waited_for(tmp_path, open_run):
    """In a run that lasts, a job goes on without Snakemake. The next one does not run it again."""
    w = seeded(tmp_path / "w")
    w.run = open_run
    kill(w, w.start())
    process = w.start()
    wait_for_line(process, "goes on, and is waited for")
    (w.folder / "gate").touch()
    w.finish(process)
    assert w.text("times") == "1\n"


def _other_input(w):
    (w.folder / "given.txt").write_text("2")


def _other_rule(w):
    (w.folder / "Snakefile").write_text(textwrap.dedent(_SEEDED).replace("{params.seed} $(", "3 $("))


@pytest.mark.parametrize("change, flags, made", [
    (lambda w: None, ["--config", "seed=2"], "2 1"),
    (_other_input, [], "1 2"),
    (_other_rule, [], "3 1"),
    (lambda w: None, ["--set-threads", "make=2"], "1 1"),
    (lambda w: None, ["--rerun-incomplete"], "1 1"),
], ids=["parameter", "input", "rule", "threads", "asked"])
def test_job_that_is_another_is_ended(tmp_path, open_run, change, flags, made):
    """A job that goes on counts only if all that decides is the same; else it ends before the new one begins."""
    w = seeded(tmp_path / "w")
    w.run = open_run
    kill(w, w.start())
    change(w)
    process = w.start(*flags)
    wait_for_line(process, "is not what is asked for now")
    (w.folder / "gate").touch()
    w.finish(process)
    assert w.text("made.txt").strip() == made
    assert sorted(job["state"] for job in w.jobs()) == ["cancelled", "done"]


def test_two_folders_share_a_run(tmp_path):
    """Neither takes a job of the other for its own, and the run goes on until the last has ended."""
    one, two = seeded(tmp_path / "one"), seeded(tmp_path / "two")
    one.run = two.run = str(tmp_path / "run")
    first = one.start()
    one.wait_for("begun")
    second = two.start("--config", "seed=2")
    two.wait_for("begun")
    (one.folder / "gate").touch()
    one.finish(first)
    (two.folder / "gate").touch()
    two.finish(second)
    assert [one.text("made.txt"), two.text("made.txt")] == ["1 1\n", "2 1\n"]
    assert [job["state"] for job in one.jobs()] == ["done", "done"]


def test_folder_with_a_long_path(tmp_path):
    """The path of a socket may have 107 bytes, that of a folder more."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    w = Workflow(folder, """
        rule all:
            output: "made.txt"
            shell: "touch {output}"
        """)
    w.finish(w.start())


def test_reasons(tmp_path):
    """A failed job and a failed group say why, and what they printed."""
    w = Workflow(tmp_path, """
        rule all:
            input: "alone.txt", "second.txt"
        rule alone:
            output: "alone.txt"
            shell: "echo what it printed; exit 7"
        rule first:
            output: "first.txt"
            group: "both"
            shell: "touch {output}"
        rule second:
            input: "first.txt"
            output: "second.txt"
            group: "both"
            shell: "echo what the group printed; exit 8"
        """)
    said = w.finish(w.start("--keep-going"), code=1)
    # 9.0.0 tells each error once more at the end, without what the executor said, and fails itself at a group.
    assert "message: None" not in said.partition("Exiting because")[0], said
    assert re.search("message: Fairway: .*exit status 7", said), said
    assert re.search("Error in group both: Fairway: .*exit status 8", said), said
    logs = [log.read_text() for log in (w.folder / ".snakemake/fairway_logs").iterdir()]
    assert sorted(re.findall("^what .* printed$", "".join(logs), re.MULTILINE)) == ["what it printed", "what the group printed"]


_LONG_TIMERS = """
import sys, threading
begin = threading.Timer.__init__
threading.Timer.__init__ = lambda self, interval, *more: begin(self, 100000, *more)
from snakemake_executor_plugin_fairway import _BECOME
sys.argv = ["-c", ".", *"--mode remote --target-jobs one: --allowed-rules one --cores 1 --force --nolock".split()]
exec(_BECOME)
"""


def test_job_does_not_wait_for_timers(tmp_path):
    """Snakemake's scheduler leaves one behind, for which its process would wait."""
    w = Workflow(tmp_path, """
        rule one:
            output: "made"
            shell: "touch {output}"
    """)
    w.finish(subprocess.Popen([sys.executable, "-c", _LONG_TIMERS], cwd=tmp_path, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True))
    assert (tmp_path / "made").exists()


def test_settings_of_snakemake_reach_jobs(tmp_path):
    """Each of these flags changes what a job makes, and Snakemake does not hand it on itself."""
    w = Workflow(tmp_path, """
        configfile: "workflow.yaml"
        name = config.get("name", "none")
        rule all:
            input: "it's $HOME/made.txt"
        rule before:
            output: temp("before.txt")
            group: "both"
            shell: "echo {name} > {output}"
        rule make:
            input: "before.txt"
            output: protected("{where}/made.txt")
            group: "both"
            resources: widget=4
            shell: "cat {input} > {output:q}; echo {resources.widget} >> {output:q}"
        """, workflow__yaml="name: of the workflow", given__yaml="other: 1")
    omits = hasattr(StorageSettings, "omit_flags")  # 9.0.0 has no such flag
    w.finish(w.start("--configfile", "given.yaml", "--replace-workflow-config", "--notemp",
                     "--resources", "widget=2", "--latency-wait", "1", *(["--omit-flags", "protected"] if omits else [])))
    made = tmp_path / "it's $HOME/made.txt"
    assert made.read_text() == "none\n2\n"
    assert bool(os.stat(made).st_mode & 0o200) == omits
    assert w.text("before.txt") == "none\n"


def test_values_reach_jobs_as_they_are(tmp_path):
    """Snakemake writes a command for each job, in which values may be read otherwise."""
    odd = "it's \"both\" $HOME\nand 'lines'"
    w = Workflow(tmp_path, """
        rule all:
            input: "made.txt"
        rule before:
            output: temp(config["name"])
            run: open(output[0], "w").write("before")
        rule make:
            input: config["name"], "'q'.txt"
            output: "made.txt"
            run: open(output[0], "w").write(repr((config["name"], list(input), open(input[0]).read())))
        """)
    (tmp_path / "'q'.txt").write_text("")
    w.finish(w.start("--config", f"name={odd}.txt"))
    # YAML folds lines of what it reads; what Snakemake itself has made of the value is what jobs get.
    name = odd.replace("\n", " ") + ".txt"
    assert w.text("made.txt") == repr((name, [name, "'q'.txt"], "before"))


def test_wildcards_that_jobs_would_not_get(tmp_path):
    """A job that would make something else is refused."""
    w = Workflow(tmp_path, """
        rule all:
            input: "'q'/made.txt"
        rule make:
            output: "{where}/made.txt"
            shell: "touch {output:q}"
        """)
    said = w.finish(w.start(), code=1)
    assert "Fairway refuses this job: wildcard where of rule make is 'q'" in said
    assert not (tmp_path / "q").exists()
