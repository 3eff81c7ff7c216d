"""Workflows that others have published, unchanged: those of Debian's documentation of Snakemake.

FAIRWAY_SNAKEMAKE_DOC names the folder of it, which scripts/fetch-snakemake-doc.sh makes. The data of
the tutorial are on a server; these here are made by wgsim of a random genome.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from fairway import Run

DOC = os.environ.get("FAIRWAY_SNAKEMAKE_DOC", "")
pytestmark = pytest.mark.skipif(not DOC, reason="make test-tutorial runs it")


def snakemake(folder, *words):
    said = subprocess.run([sys.executable, "-m", "snakemake", *words], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert said.returncode == 0, said.stdout
    return said.stdout


def done(folder):
    """How many jobs of each step Fairway has done."""
    steps = [job["step"] for job in Run(str(folder / ".fairway-snakemake")).jobs() if job["state"] == "done"]
    return {step: steps.count(step) for step in steps}


def blocks(name, language):
    """The pieces of code in a page of the tutorial."""
    with open(os.path.join(DOC, "html/_sources/tutorial", name + ".rst.txt"), encoding="utf-8") as f:
        text = f.read()
    found = re.findall(r"^\.\. code:: %s\n\n((?:    .*\n|[ \t]*\n)+)" % language, text, re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


def make_samples(folder):
    """A genome, and reads of three individuals that differ from it."""
    (folder / "data/samples").mkdir(parents=True)
    draw = random.Random(1)
    genome = "".join(draw.choice("ACGT") for _ in range(100_000))
    (folder / "data/genome.fa").write_text(">I\n" + "\n".join(textwrap.wrap(genome, 60)) + "\n")
    for seed, sample in enumerate("ABC", 1):
        subprocess.run(["wgsim", "-S", str(seed), "-N", "10000", "-1", "100", "-r", "0.002", "-h", "data/genome.fa",
                        f"data/samples/{sample}.fastq", "/dev/null"], cwd=folder, check=True, capture_output=True)
    subprocess.run(["bwa", "index", "data/genome.fa"], cwd=folder, check=True, capture_output=True)


def test_tutorial(tmp_path):
    """The workflow to which both parts of the tutorial lead, and its exercise with a third sample."""
    make_samples(tmp_path)
    config = blocks("advanced", "yaml")[-1]
    (tmp_path / "config.yaml").write_text(config)
    (tmp_path / "Snakefile").write_text(blocks("advanced", "python")[-1])
    (tmp_path / "scripts").mkdir()
    plots = [block for block in blocks("basics", "python") if "import matplotlib" in block]
    (tmp_path / "scripts/plot-quals.py").write_text(plots[-1])
    snakemake(tmp_path, "--executor", "fairway", "--jobs", "10", "--cores", "2")
    assert done(tmp_path) == {"bwa_map": 2, "samtools_sort": 2, "samtools_index": 2, "bcftools_call": 1, "plot_quals": 1}
    variants = [line for line in (tmp_path / "calls/all.vcf").read_text().splitlines() if not line.startswith("#")]
    assert len(variants) > 100
    assert "<svg" in (tmp_path / "plots/quals.svg").read_text()
    assert not list((tmp_path / "mapped_reads").glob("*.bam"))  # they are temp
    assert not os.access(tmp_path / "sorted_reads/A.bam", os.W_OK) or os.geteuid() == 0  # it is protected
    (tmp_path / "config.yaml").write_text(config.replace("    B:", "    C: data/samples/C.fastq\n    B:"))
    snakemake(tmp_path, "--executor", "fairway", "--jobs", "10", "--cores", "2", "--forcerun", "bcftools_call")
    assert done(tmp_path)["bwa_map"] == 3  # A and B are there


def test_example_c(tmp_path):
    """A program of two files in C, from Snakemake's examples."""
    shutil.copytree(os.path.join(DOC, "examples/c"), tmp_path / "c")
    source = tmp_path / "c/src"
    snakemake(source, "--executor", "fairway", "--jobs", "10", "hello")
    assert done(source) == {"c_to_o": 2, "hello": 1}
    assert "Hello" in subprocess.run([str(source / "hello")], stdout=subprocess.PIPE, text=True).stdout
