"""The first example of docs/snakemake.md, as a user types it."""

import os
import re
import subprocess
import sys

_PAGE = os.path.join(os.path.dirname(__file__), "../../../docs/snakemake.md")


def test_first_example(tmp_path):
    with open(_PAGE, encoding="utf-8") as f:
        block = re.search(r"^```\n(.*?)^```", f.read(), re.MULTILINE | re.DOTALL).group(1)
    command = next(line for line in block.splitlines() if line.startswith("snakemake "))
    (tmp_path / "Snakefile").write_text('rule all:\n    output: "made.txt"\n    shell: "echo made > {output}"\n')
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    done = subprocess.run(command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "made.txt").read_text() == "made\n"
