#!/usr/bin/env bash
# Unpacks the HTCondor of Debian 13 into a folder named as the argument, if it is not there yet. Its
# programs run where they are, with their own libraries, on a Debian of any version: nothing is
# installed, and the machine's own packages stay as they are. condor/ of the folder links to them; they
# read the configuration that CONDOR_CONFIG names.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$(realpath -m "$1")
[[ -e $place/done ]] && exit 0
scripts/install-packages.sh mmdebstrap patchelf

mirror=$(find /etc/apt -maxdepth 2 \( -name '*.list' -o -name '*.sources' \) -exec cat {} + |
	sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' -e 's/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' | head -n 1)
rm -rf "$place" && mkdir -p "$place"
mmdebstrap --quiet --mode=root --variant=extract --include=minihtcondor trixie "$place" "$mirror"

# The loader and the libraries of Debian 13, not those of this machine.
loader=$(find "$place/usr" -name 'ld-linux-*.so.*' -print -quit)
libraries=$(find "$place/usr" -name libc.so.6 -printf '%h\n' -quit)
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
