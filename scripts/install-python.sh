#!/usr/bin/env bash
# Unpacks the Python of Debian 13 into a folder named as the argument, if it is not there yet. It runs
# where it is, with its own libraries, on a Debian of any version: nothing is installed. Its program is
# usr/bin/python3 of the folder.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$(realpath -m "$1")
[[ -e $place/done ]] && exit 0
scripts/install-packages.sh mmdebstrap patchelf

mirror=$(find /etc/apt -maxdepth 2 \( -name '*.list' -o -name '*.sources' \) -exec cat {} + |
	sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' -e 's/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' | head -n 1)
rm -rf "$place" && mkdir -p "$place"
mmdebstrap --quiet --mode=root --variant=extract --include=python3,python3-venv trixie "$place" "$mirror"

# The loader and the libraries of Debian 13, not those of this machine.
loader=$(find "$place/usr" -name 'ld-linux-*.so.*' -print -quit)
libraries=$(find "$place/usr" -name libc.so.6 -printf '%h\n' -quit)
program=$(realpath "$place/usr/bin/python3")
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries:$place/usr/lib" "$program"
"$place/usr/bin/python3" -c 'import ctypes, sqlite3, ssl, venv, zlib'
touch "$place/done"
