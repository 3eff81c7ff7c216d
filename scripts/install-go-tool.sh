#!/usr/bin/env bash
# Installs a Go program at a fixed version into the folder bin of the
# repository: install-go-tool.sh PACKAGE VERSION. The version is kept in a
# file beside the program, so that a second run costs nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

package=$1 version=$2
name=$(basename "$package")
stamp=bin/.$name.version
if [[ -x bin/$name && -r $stamp && $(<"$stamp") == "$version" ]]; then
	exit 0
fi

echo "installing $name $version" >&2
mkdir -p bin
GOBIN=$PWD/bin go install "$package@$version"
echo "$version" >"$stamp"
