"""Workflows whose jobs bring their files, on pilots that have the folder of the workflow no more than any other."""

import os
import stat
import subprocess

import pytest
from test_fairway import Workflow

_FLAGS = ("--fairway-files", "--fairway-pilots", "2", "--latency-wait", "1")


def test_files_travel(tmp_path):
    """Scripts and their modules, configuration, temporary and protected files, folders, logs and benchmarks."""
    (tmp_path / "workflow/scripts").mkdir(parents=True)
    (tmp_path / "workflow/names.py").write_text("NAMES = ['a', 'b']\n")
    (tmp_path / "workflow/scripts/script.py").write_text(
        "from beside import V\nopen(snakemake.output[0], 'w').write(V + snakemake.config['v'])\n")
    (tmp_path / "workflow/scripts/beside.py").write_text("V = 'of a module, '\n")
    (tmp_path / "it's \"data\"").mkdir()
    for name in "ab":
        (tmp_path / f"it's \"data\"/{name}.txt").write_text(name)
    w = Workflow(tmp_path, "", config__yaml="v: configured")
    (tmp_path / "workflow/Snakefile").write_text('''
import sys
sys.path.insert(0, workflow.basedir)
from names import NAMES
configfile: "config.yaml"
rule all:
    input: "joined.txt", "scripted.txt"
rule upper:
    input: "it's \\"data\\"/{name}.txt"
    output: temp("upper/{name}.txt")
    log: "logs/{name}.log"
    shell: "tr a-z A-Z < {input:q} > {output}; touch beside; pwd > {log}; find . -name '[ab].txt' -path '*data*' >> {log}"
rule folder:
    input: "upper/a.txt"
    output: directory("folder"), touch("touched")
    benchmark: "times.tsv"
    shell: "mkdir -p {output[0]}/in; cp {input} {output[0]}/in/a; ln -s in/a {output[0]}/link"
rule joined:
    input: expand("upper/{name}.txt", name=NAMES), "folder", ancient("touched")
    output: protected("joined.txt")
    shell: "cat {input[0]} {input[1]} {input[2]}/link > {output}"
rule scripted:
    output: "scripted.txt"
    script: "scripts/script.py"
''')
    os.remove(tmp_path / "Snakefile")
    w.finish(w.start(*_FLAGS))
    assert w.text("joined.txt") == "ABA" and w.text("scripted.txt") == "of a module, configured"
    where, *seen = w.text("logs/a.log").splitlines()
    assert where != str(tmp_path) and seen == ["./it's \"data\"/a.txt"]
    assert sorted(os.listdir(tmp_path)) == [
        ".snakemake", "config.yaml", "folder", "it's \"data\"", "joined.txt", "logs", "run", "scripted.txt",
        "times.tsv", "touched", "workflow"]
    modes = {name: stat.S_IMODE(os.stat(tmp_path / name).st_mode) & 0o200 for name in ("joined.txt", "scripted.txt")}
    assert modes == {"joined.txt": 0, "scripted.txt": 0o200}
    assert "Nothing to be done" in w.finish(w.start(*_FLAGS))


def test_checkpoints_and_groups_travel(tmp_path):
    w = Workflow(tmp_path, """
        def parts(wildcards):
            folder = checkpoints.parts.get().output[0]
            return expand("double/{i}.txt", i=sorted(glob_wildcards(folder + "/{i}.txt").i))
        rule all:
            input: parts
            output: "sum.txt"
            shell: "cat {input} > {output}"
        checkpoint parts:
            output: directory("parts")
            shell: "mkdir {output}; for i in 1 2 3; do echo $i > {output}/$i.txt; done"
        rule copy:
            input: "parts/{i}.txt"
            output: temp("copy/{i}.txt")
            group: "both"
            shell: "cp {input} {output}"
        rule double:
            input: "copy/{i}.txt"
            output: "double/{i}.txt"
            group: "both"
            shell: "cat {input} {input} > {output}"
        """)
    w.finish(w.start(*_FLAGS))
    assert w.text("sum.txt").split() == ["1", "1", "2", "2", "3", "3"]
    assert not os.listdir(tmp_path / "copy") if (tmp_path / "copy").exists() else True


def test_file_that_changes_gets_another_name(tmp_path):
    """What a rule on this machine has made of a file is what the next job reads."""
    w = Workflow(tmp_path, """
        localrules: all, edit
        rule all:
            input: "last.txt"
        rule first:
            output: "first.txt"
            shell: "echo first > {output}"
        rule edit:
            input: "first.txt"
            output: touch("edited")
            shell: "echo edited >> {input}"
        rule last:
            input: "first.txt", "edited"
            output: "last.txt"
            shell: "cat {input} > {output}"
        """)
    w.finish(w.start(*_FLAGS))
    assert w.text("last.txt") == "first\nedited\n"


def test_job_that_would_read_something_else_fails(tmp_path):
    """A Snakefile that looks into folders sees others in a job: that is no result, but an error."""
    w = Workflow(tmp_path, """
        NAMES = sorted(glob_wildcards("data/{name}.txt").name)
        rule all:
            input: expand("data/{name}.txt", name=NAMES)
            output: "all.txt"
            shell: "cat /dev/null {input} > {output}"
        """)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("a")
    (tmp_path / "data/of another rule.csv").write_text("")
    w.finish(w.start(*_FLAGS))
    assert w.text("all.txt") == "a"  # it is declared
    w = Workflow(tmp_path, """
        import glob
        rule all:
            output: "params.txt"
            params: n=len(glob.glob("data/*"))
            shell: "echo {params.n} > {output}"
        """)
    said = w.finish(w.start(*_FLAGS), code=1)
    assert "has another" in said and "--fairway-sources" in said, said
    assert not (tmp_path / "params.txt").exists()
    w.finish(w.start(*_FLAGS, "--fairway-sources", "data"))
    assert w.text("params.txt") == "2\n"


@pytest.mark.parametrize("rule, why", [
    ('output: pipe("made.txt")', "a pipe"),
    ('output: service("made.txt")', "a service"),
    ('output: update("made.txt")', "a file that it updates"),
    ('output: "{}/made.txt"', "relative to the working folder"),
    ('output: "made.txt"\n    log: "../l.log"', "lies outside"),
])
def test_what_does_not_travel_is_refused(tmp_path, rule, why):
    (tmp_path / "w").mkdir()
    w = Workflow(tmp_path / "w", "")
    reader = f"rule all:\n    input: {rule.splitlines()[0].removeprefix('output: ')}\n    output: 'x'\n    shell: 'cat {{input}}'"
    (tmp_path / "w/Snakefile").write_text((reader + f"\nrule made:\n    {rule}\n    shell: 'echo > {{output}}'\n").replace(
        "{}", str(tmp_path)))
    said = w.finish(w.start(*_FLAGS), code=1)
    assert "Fairway refuses this job" in said and why in said, said


_SITES = """\
sites:
  farm:
    system: command
    shares: nothing
    max_pilots: 2
    min_pilots: 2
    poll: 200ms
    scratch: {0}/scratch
    has: {{place: 1}}
    command:
      private: true
      submit: [sh, {0}/submit, "{{name}}"]
      status: [sh, -c, 'while read name id; do kill -0 $id 2>/dev/null && echo "$name $id runs"; done < "$0"; true', {0}/submitted]
      job: '(?m)^(?P<name>\\S+) (?P<id>\\d+) (?P<state>\\S+)$'
      states: {{running: [runs]}}
      cancel: [kill, "{{id}}"]
"""

# Nothing of the folder of the workflow is there.
_SUBMIT = """\
cat >"{0}/scripts/$1"
setsid unshare --mount sh -ec 'mount -t tmpfs none {0}/w; exec sh "$0"' "{0}/scripts/$1" >"{0}/$1.out" 2>&1 </dev/null &
echo "$1 $!" >>{0}/submitted
"""


@pytest.mark.skipif(subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0,
                    reason="mount namespaces cannot be made")
def test_nodes_share_no_disk(tmp_path):
    for folder in ("w/scripts", "run", "scratch", "scripts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "run/sites.yaml").write_text(_SITES.format(tmp_path))
    (tmp_path / "submit").write_text(_SUBMIT.format(tmp_path))
    (tmp_path / "submitted").touch()
    (tmp_path / "w/scripts/join.py").write_text(
        "open(snakemake.output[0], 'w').write(''.join(open(i).read() for i in snakemake.input) + snakemake.config['v'])\n")
    w = Workflow(tmp_path / "w", """
        configfile: "config.yaml"
        rule join:
            input: "1.txt", "2.txt"
            output: "joined.txt"
            script: "scripts/join.py"
        rule part:
            input: "given.txt"
            output: temp("{i}.txt")
            shell: "cat {input} > {output}; echo {wildcards.i} >> {output}"
        """, given__txt="given\n", config__yaml="v: configured")
    w.run = str(tmp_path / "run")
    w.finish(w.start("--fairway-files", "--fairway-site", "farm"))
    assert w.text("joined.txt") == "given\n1\ngiven\n2\nconfigured"
    assert {job["pilot"].partition("-")[0].partition(".")[0] for job in w.jobs()} == {"farm"}
