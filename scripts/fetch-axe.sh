#!/usr/bin/env bash
# Puts axe.min.js of a version of axe-core into a folder, for tests of pages. It is no part of
# Fairway. Where the file is, nothing is done.
set -euo pipefail

version=$1 folder=$2
file=$folder/axe-$version.min.js
[[ -s $file ]] && exit 0
mkdir -p "$folder"
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
(cd "$temporary" && npm pack --silent "axe-core@$version" >/dev/null && tar xzf axe-core-*.tgz package/axe.min.js)
mv "$temporary/package/axe.min.js" "$file"
