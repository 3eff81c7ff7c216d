#!/usr/bin/env bash
# Makes the files of a Debian release that has Python and nothing else beside the essential packages, in
# an archive: bare-debian.sh RELEASE ARCHIVE. A second run costs nothing. It takes packages from where
# this machine gets its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

release=$1 archive=$2
[[ -s $archive ]] && exit 0
scripts/install-packages.sh debootstrap
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -v security | head -1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "making a bare Debian $release" >&2
debootstrap --variant=minbase --include=python3-venv "$release" "$folder/root" "${mirror:-http://deb.debian.org/debian}" \
	>"$folder/log" 2>&1 || { tail -20 "$folder/log" >&2; exit 1; }
rm -rf "$folder"/root/var/cache/apt/* "$folder"/root/var/lib/apt/lists/*
mkdir -p "$(dirname "$archive")"
tar -C "$folder/root" --exclude=./dev/* -cf "$archive.new" .
mv "$archive.new" "$archive"
