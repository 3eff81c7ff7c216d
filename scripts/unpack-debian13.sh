# Sourced by scripts that unpack programs of Debian 13: they run where they are, with their own loader and
# libraries, on a Debian of any version, and nothing is installed.

# unpack_debian13 unpacks packages, separated by commas, into a folder, from the mirror of this machine. It
# sets loader and libraries: those of Debian 13, not those of this machine.
unpack_debian13() {
	local place=$1 packages=$2 mirror
	scripts/install-packages.sh mmdebstrap patchelf
	mirror=$(find /etc/apt -maxdepth 2 \( -name '*.list' -o -name '*.sources' \) -exec cat {} + |
		sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' -e 's/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' | head -n 1)
	rm -rf "$place" && mkdir -p "$place"
	mmdebstrap --quiet --mode=root --variant=extract --include="$packages" trixie "$place" "$mirror"
	loader=$(find "$place/usr" -name 'ld-linux-*.so.*' -print -quit)
	libraries=$(find "$place/usr" -name libc.so.6 -printf '%h\n' -quit)
}
