#!/usr/bin/env bash
# Installs the Debian packages named as arguments, those that are missing.
# It asks the package database first, so that a second run costs nothing.
set -euo pipefail

missing=()
for package in "$@"; do
	status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
	[[ $status == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
	command -v sudo >/dev/null || {
		echo "install-packages: these are missing, and there is no sudo to install them: ${missing[*]}" >&2
		exit 1
	}
	as_root=(sudo)
fi

echo "installing ${missing[*]}" >&2
install() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install --yes --quiet=2 --no-install-recommends "${missing[@]}" >/dev/null
}
# The package lists of a fresh machine are empty or old.
install 2>/dev/null || {
	"${as_root[@]}" apt-get update --quiet=2
	install
}
