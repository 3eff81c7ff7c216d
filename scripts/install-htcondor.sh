#!/usr/bin/env bash
# Unpacks the HTCondor of Debian 13 into a folder named as the argument, if it is not there yet. Its
# programs run where they are, with their own libraries, on a Debian of any version: nothing is
# installed, and the machine's own packages stay as they are. condor/ of the folder links to them; they
# read the configuration that CONDOR_CONFIG names.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$(realpath -m "$1")
[[ -e $place/done ]] && exit 0
. scripts/unpack-debian13.sh
unpack_debian13 "$place" minihtcondor
paths=$libraries:$libraries/condor:$place/usr/lib/condor:$place/usr/lib
find "$place"/usr/{bin,sbin,lib,libexec} -type f -path '*condor*' -perm /111 | while read -r file; do
	case $(head -c 4 "$file" | tr -d '\0') in
	$'\x7fELF')
		if patchelf --print-interpreter "$file" >/dev/null 2>&1; then
			patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$paths" "$file"
		fi
		;;
	esac
done
mkdir "$place/condor"
ln -s "$place"/usr/bin/condor_* "$place"/usr/sbin/condor_* "$place/condor/"
touch "$place/done"
