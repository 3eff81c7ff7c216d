#!/usr/bin/env bash
# Unpacks the Python of Debian 13 into a folder named as the argument, if it is not there yet. It runs
# where it is, with its own libraries, on a Debian of any version: nothing is installed. Its program is
# usr/bin/python3 of the folder.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$(realpath -m "$1")
[[ -e $place/done ]] && exit 0
. scripts/unpack-debian13.sh
unpack_debian13 "$place" python3,python3-venv
program=$(realpath "$place/usr/bin/python3")
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries:$place/usr/lib" "$program"
"$place/usr/bin/python3" -c 'import ctypes, sqlite3, ssl, venv, zlib'
touch "$place/done"
