#!/usr/bin/env bash
# Makes the sdists of both Python packages, and wheels of these, and tries each in an empty environment as the
# pages say: the client runs the first example of python/README.md, and Snakemake a workflow by the command of the
# plugin's page. The recipe for conda-forge is rendered, and says what the metadata do.
#
#	try-python.sh UV PROGRAM
#
# UV is the program uv, and PROGRAM the folder of fairway.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
uv=$1
FAIRWAY_BIN=$(realpath "$2")
export FAIRWAY_BIN
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for package in "$root/python" "$root/python/snakemake-executor-plugin-fairway"; do
	"$uv" --quiet build --python python3 --sdist --out-dir "$work/sdists" "$package"
done
for sdist in "$work"/sdists/*.tar.gz; do
	"$uv" --quiet build --python python3 --wheel --out-dir "$work/wheels" "$sdist"
done

awk '/^```python/ {on = 1; next} /^```/ {on = 0} on' "$root/python/README.md" >"$work/example.py"
command=$(grep -o '^snakemake .*' "$root/python/snakemake-executor-plugin-fairway/README.md")
for kind in sdists wheels; do
	folder=$work/$kind
	rm -rf "$work/venv"
	"$uv" --quiet venv --python python3 "$work/venv"
	VIRTUAL_ENV=$work/venv "$uv" --quiet pip install "$folder"/fairway_jobs-*
	[ "$(cd "$work" && venv/bin/python example.py)" = 328350 ] || { echo "of $kind the example fails" >&2; exit 1; }
	VIRTUAL_ENV=$work/venv "$uv" --quiet pip install "$folder"/fairway_jobs-* "$folder"/snakemake_executor_plugin_fairway-*
	rm -rf "$work/flow"
	mkdir "$work/flow"
	printf 'rule all:\n    output: "made"\n    shell: "echo made > {output}"\n' >"$work/flow/Snakefile"
	(cd "$work/flow" && PATH="$work/venv/bin:$PATH" $command) >"$work/said" 2>&1 && [ "$(cat "$work/flow/made")" = made ] ||
		{ cat "$work/said"; echo "of $kind the plugin fails: $command" >&2; exit 1; }
done

"$uv" --quiet venv --clear --python python3 "$work/venv"
VIRTUAL_ENV=$work/venv "$root/scripts/get.sh" "$uv" --quiet pip install py-rattler-build==0.73.0
"$work/venv/bin/python" - "$root/python" <<'END'
import re
import sys
import tomllib

import rattler_build

with open(sys.argv[1] + "/pyproject.toml", "rb") as f:
    project = tomllib.load(f)
with open(sys.argv[1] + "/src/fairway/__init__.py") as f:
    version = re.search(r'__version__ = "(.*)"', f.read())[1]
path = sys.argv[1] + "/recipe/recipe.yaml"
(variant,) = rattler_build.Stage0Recipe.from_file(path).render()
made = variant.recipe.package
assert (str(made.name), str(made.version)) == (project["project"]["name"], version), made
with open(path) as f:
    text = f.read()
for needed in (*project["project"]["dependencies"], *project["build-system"]["requires"]):
    assert re.sub(r"([=<>])", r" \1", needed, count=1) in text, f"{path} does not name {needed}"
assert f'python_min: "{project["project"]["requires-python"].removeprefix(">=")}"' in text, path
END
echo "sdists and wheels of both Python packages work in empty environments"
