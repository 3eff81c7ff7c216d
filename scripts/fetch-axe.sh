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
curl --fail --silent --show-error --location "https://registry.npmjs.org/axe-core/-/axe-core-$version.tgz" |
	tar xz -C "$temporary" package/axe.min.js
mv "$temporary/package/axe.min.js" "$file"
