#!/usr/bin/env bash
# Makes the sdists of both Python packages, and wheels of these, and tries each in an empty environment: the
# client runs the first example of python/README.md, and Snakemake finds the plugin.
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
for kind in sdists wheels; do
	folder=$work/$kind
	rm -rf "$work/venv"
	"$uv" --quiet venv --python python3 "$work/venv"
	VIRTUAL_ENV=$work/venv "$uv" --quiet pip install "$folder"/fairway_jobs-*
	[ "$(cd "$work" && venv/bin/python example.py)" = 328350 ] || { echo "of $kind the example fails" >&2; exit 1; }
	VIRTUAL_ENV=$work/venv "$uv" --quiet pip install "$folder"/fairway_jobs-* "$folder"/snakemake_executor_plugin_fairway-*
	"$work/venv/bin/snakemake" --help | grep -q 'fairway' || { echo "of $kind the plugin is not found" >&2; exit 1; }
done
echo "sdists and wheels of both Python packages work in empty environments"
