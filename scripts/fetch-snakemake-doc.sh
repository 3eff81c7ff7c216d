#!/usr/bin/env bash
# Unpacks Debian's documentation of Snakemake, with its tutorial and examples, into a folder:
# fetch-snakemake-doc.sh FOLDER. It is not installed, since systems may be set to install no
# documentation. A second run costs nothing.
set -euo pipefail

folder=$1
[[ -d $folder ]] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
download() (cd "$work" && apt-get download --quiet=2 -o APT::Sandbox::User=root snakemake-doc)
download 2>/dev/null || { apt-get update --quiet=2 && download; }
dpkg -x "$work"/*.deb "$work/files"
mkdir -p "$(dirname "$folder")"
mv "$work/files/usr/share/doc/snakemake" "$folder"
