#!/usr/bin/env bash
# Unpacks the source distribution of Snakemake, which has its tests, into a folder, by a Python that
# has pip: fetch-snakemake-tests.sh VERSION FOLDER PYTHON. A second run costs nothing.
set -euo pipefail

version=$1 folder=$2 python=$3
[[ -d $folder ]] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip download --quiet --no-deps --no-binary snakemake --dest "$work" "snakemake==$version"
tar -xzf "$work/snakemake-$version.tar.gz" -C "$work"
mkdir -p "$(dirname "$folder")"
mv "$work/snakemake-$version" "$folder"
