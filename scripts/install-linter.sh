#!/usr/bin/env bash
# Installs golangci-lint at a fixed version into the folder bin of the
# repository, with those of its linters that .golangci.yml enables:
# install-linter.sh VERSION. To compile all of its 110 linters takes twice as
# long. The version and the linters are kept in a file beside the program, so
# that a second run costs nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=github.com/golangci/golangci-lint/v2 version=$1
linters=$(sed -n '/^  enable:/,/^$/s/^ *- //p' .golangci.yml | xargs)
stamp=bin/.golangci-lint.version
if [[ -x bin/golangci-lint && -r $stamp && $(<"$stamp") == "$version $linters" ]]; then
	exit 0
fi

echo "installing golangci-lint $version with $linters" >&2
mkdir -p bin
# The place is always the same, since what is compiled is found again by it.
place=$(go env GOCACHE)/golangci-lint-$version
mkdir -p "$place"
exec 9<"$place"
flock 9
cp -R "$(go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')/." "$place"
chmod -R u+w "$place"
list=pkg/lint/lintersdb/builder_linter.go
awk -v enabled="$linters" '
	BEGIN { split(enabled, names, " "); for (i in names) wanted[names[i]]; wanted["golinters"] }
	match($0, /\/golinters\/[a-z0-9]+/) && !(substr($0, RSTART + 11, RLENGTH - 11) in wanted) { next }
	match($0, /^\t\tlinter\.NewConfig\([a-z0-9]+/) { out = !(substr($0, RSTART + 19, RLENGTH - 19) in wanted) }
	/^$|^\t}/ { out = 0 }
	!out' "$place/$list" >"$place/$list.new"
mv "$place/$list.new" "$place/$list"
(cd "$place" && go build -gcflags=all=-dwarf=false -ldflags='-s -w' ./cmd/golangci-lint)
mv "$place/golangci-lint" bin/
rm -rf "$place"
echo "$version $linters" >"$stamp"
