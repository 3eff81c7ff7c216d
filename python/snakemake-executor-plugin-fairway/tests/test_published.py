"""Workflows that others have published, unchanged: those of Debian's documentation of Snakemake, and
PiGx RNA-seq of its package pigx-rnaseq.

FAIRWAY_SNAKEMAKE_DOC names the folder of the documentation, which scripts/fetch-snakemake-doc.sh makes;
FAIRWAY_PIGX that of PiGx, since a test that takes minutes is to be asked for. The data of the tutorial
are on a server; these here are made of a random genome.
"""

import gzip
import json
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
PIGX = os.environ.get("FAIRWAY_PIGX", "")


def snakemake(folder, *words):
    """Run it, and return what it says."""
    said = subprocess.run([sys.executable, "-m", "snakemake", *words], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert said.returncode == 0, said.stdout
    return said.stdout


def done(folder):
    """How many jobs of each step Fairway has done for the last Snakemake."""
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


@pytest.mark.skipif(not DOC, reason="make test-tutorial runs it")
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
    assert done(tmp_path)["bwa_map"] == 1  # A and B are there


@pytest.mark.skipif(not DOC, reason="make test-tutorial runs it")
def test_example_c(tmp_path):
    """A program of two files in C, from Snakemake's examples."""
    shutil.copytree(os.path.join(DOC, "examples/c"), tmp_path / "c")
    source = tmp_path / "c/src"
    snakemake(source, "--executor", "fairway", "--jobs", "10", "hello")
    assert done(source) == {"c_to_o": 2, "hello": 1}
    assert "Hello" in subprocess.run([str(source / "hello")], stdout=subprocess.PIPE, text=True).stdout


def make_experiment(folder):
    """A genome of 40 genes with two exons, and pairs of reads of two kinds of samples, two of each."""
    draw = random.Random(2)
    genome, annotations, transcripts = [], [], []
    for gene in range(40):
        for exon in (1, 2):
            genome.append("".join(draw.choice("ACGT") for _ in range(600)))
            begin = sum(map(len, genome)) - 500
            ids = f'gene_id "G{gene}"; transcript_id "T{gene}"; exon_number "{exon}";'
            annotations.append(f"1\ttest\texon\t{begin + 1}\t{begin + 500}\t.\t+\t.\t{ids}\n")
        transcripts.append(genome[-2][100:] + genome[-1][100:])
    (folder / "genome.fa").write_text(">1\n" + "\n".join(textwrap.wrap("".join(genome), 60)) + "\n")
    (folder / "genes.gtf").write_text("".join(annotations))
    (folder / "cdna.fa").write_text("".join(f">T{i}\n{t}\n" for i, t in enumerate(transcripts)))
    (folder / "reads").mkdir()
    sheet = ["name,reads,reads2,sample_type"]
    complement = str.maketrans("ACGT", "TGCA")
    for sample, kind in (("A1", "A"), ("A2", "A"), ("B1", "B"), ("B2", "B")):
        files = [f"{sample}.{i}.fq.gz" for i in (1, 2)]
        sheet.append(",".join([sample, *files, kind]))
        ends = [[], []]
        for gene, transcript in enumerate(transcripts):
            for pair in range(int(draw.gammavariate(3, 20) * (4 if kind == "B" and gene < 10 else 1)) + 1):
                begin = draw.randrange(len(transcript) - 250)
                piece = transcript[begin: begin + 250]
                for end, bases in zip(ends, (piece[:75], piece.translate(complement)[::-1][:75])):
                    end.append(f"@{sample}.{gene}.{pair}\n{bases}\n+\n{'I' * 75}\n")
        for name, end in zip(files, ends):
            with gzip.open(folder / "reads" / name, "wt") as f:
                f.write("".join(end))
    (folder / "sheet.csv").write_text("\n".join(sheet) + "\n")


def pigx(folder, made, *words):
    """Run PiGx RNA-seq on an experiment, as its program does, and return what it has counted.

    What it normalizes of Salmon is left out: Salmon itself draws at random, and no two runs are the same.
    """
    import yaml

    with open("/usr/share/pigx_rnaseq/settings.yaml", encoding="utf-8") as f:
        config = yaml.safe_load(f)
    config["locations"] = {
        "reads-dir": str(folder / "reads"), "output-dir": str(made / "out"), "genome-fasta": str(folder / "genome.fa"),
        "cdna-fasta": str(folder / "cdna.fa"), "gtf-file": str(folder / "genes.gtf"),
        "sample-sheet": str(folder / "sheet.csv"), "pkglibexecdir": PIGX, "pkgdatadir": "/usr/share/pigx_rnaseq",
    }
    config["execution"]["target"] = None
    for rule in config["execution"]["rules"].values():  # 200 MB are not enough for R, and 32 GB more than a pilot has
        rule["threads"], rule["memory"] = 1, 1000
    (made / "config.json").write_text(json.dumps(config))
    snakemake(made, "--snakefile", PIGX + "/snakefile.py", "--configfile", "config.json", "--cores", "2", *words)
    counts = made / "out/feature_counts"
    made = {str(f.relative_to(counts)): f.read_text() for f in sorted(counts.rglob("*")) if f.is_file()}
    assert len(made) == 7, made.keys()
    return {name: text for name, text in made.items() if not name.startswith("normalized/salmon")}


@pytest.mark.skipif(not PIGX, reason="make test-pigx runs it")
def test_pigx(tmp_path):
    """PiGx RNA-seq: 33 jobs with fastp, HISAT2, Salmon, samtools, megadepth, MultiQC and R count as without us."""
    make_experiment(tmp_path)
    for name in ("remote", "local"):
        (tmp_path / name).mkdir()
    remote = pigx(tmp_path, tmp_path / "remote", "--executor", "fairway", "--jobs", "10")
    steps = done(tmp_path / "remote")
    assert steps["hisat2_map"] == steps["salmon_quant"] == steps["trim_qc_reads_pe"] == 4, steps
    assert "multiqc" in steps and sum(steps.values()) > 30, steps
    assert remote == pigx(tmp_path, tmp_path / "local") and len(remote) == 5, remote.keys()
