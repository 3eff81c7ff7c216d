#!/usr/bin/env bash
# Makes a wheel in a folder, by a Python that has build and hatchling, of a program for a platform, of
# the client alone, or of the plugin for Snakemake:
#
#	wheel.sh OUT PYTHON program PROGRAM PLATFORM
#	wheel.sh OUT PYTHON client PLATFORM
#	wheel.sh OUT PYTHON snakemake
#
# FAIRWAY_LICENSES names a folder with the licences of what is linked into the program, and
# SOURCE_DATE_EPOCH the time of all files.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

mkdir -p "$1"
out=$(cd "$1" && pwd) python=$2 kind=$3 source=$root/python
unset FAIRWAY_PROGRAM FAIRWAY_PLATFORM
case $kind in
program)
	FAIRWAY_PROGRAM=$(realpath "$4") FAIRWAY_PLATFORM=$5
	export FAIRWAY_PROGRAM FAIRWAY_PLATFORM
	;;
client) export FAIRWAY_PLATFORM=$4 ;;
snakemake) source=$root/python/snakemake-executor-plugin-fairway ;;
*) echo "wheel.sh makes program, client or snakemake" >&2 && exit 2 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -RL "$source" "$work/source"
find "$work/source" -name __pycache__ -prune -exec rm -rf {} +
cp "$root/LICENSE" "$work/source"
if [ "$kind" != snakemake ]; then
	rm -rf "$work/source/snakemake-executor-plugin-fairway"
	[ -z "${FAIRWAY_LICENSES-}" ] || cp -r "$FAIRWAY_LICENSES" "$work/source/licenses"
fi
chmod -R u+w,go+r "$work/source"
export FAIRWAY_SCHEMA=$root/schema/workflow.schema.json
"$python" -m build --no-isolation --wheel --outdir "$out" "$work/source" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
