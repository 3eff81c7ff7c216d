#!/usr/bin/env bash
# Makes a release of this commit in a folder: release.sh FOLDER. It gets tarballs and Debian packages
# for linux on amd64 and arm64, wheels for these, of the client alone for macOS and of the plugin for
# Snakemake, an SBOM, and SHA256SUMS. Two builds of a commit with the same Go are the same bytes: all
# times are that of the commit. It needs nfpm, cyclonedx-gomod and wheel-tools in bin/ (`make release`
# installs them).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=$1
mkdir -p "$out"
out=$(cd "$out" && pwd)
root=$PWD
version=$(sed -n 's/^const Release = "\(.*\)"/\1/p' internal/cli/console/version.go)
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
DATE=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
export SOURCE_DATE_EPOCH DATE VERSION=$version CGO_ENABLED=0 TZ=UTC LC_ALL=C GOFLAGS=
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage
mkdir "$stage"

# What all have. What is compiled for it is part of the program, which is built below.
go run -trimpath ./scripts/release "$stage"
cp LICENSE README.md schema/workflow.schema.json "$stage"
gzip -9n "$stage"/man1/*.1
{
	cat LICENSE
	for licence in "$stage"/licenses/*; do
		printf '\n---- %s\n\n' "$(basename "$licence")"
		cat "$licence"
	done
} >"$stage/copyright"
wheel() { FAIRWAY_LICENSES=$stage/licenses scripts/wheel.sh "$out" "$root/bin/wheel-tools/bin/python" "$@"; }

for arch in amd64 arm64; do
	mkdir "$stage/$arch"
	GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -o "$stage/$arch/fairway" -ldflags "-s -w -buildid= \
		-X fairway/internal/cli/console.version=$version -X fairway/internal/cli/console.commit=$commit -X fairway/internal/cli/console.date=$DATE" \
		./cmd/fairway
done
bin/cyclonedx-gomod bin -json -licenses -noserial -std -version "v$version" -output "$work/sbom.json" \
	"$stage/amd64/fairway" 2>"$work/sbom.log" || { cat "$work/sbom.log" >&2; exit 1; }
python3 - "$work/sbom.json" "$stage/sbom.json" "$DATE" "$version" <<'PYTHON'
import json, sys
source, target, date, version = sys.argv[1:]
with open(source, encoding="utf-8") as f:
    sbom = json.load(f)
sbom["metadata"]["timestamp"] = date
sbom["metadata"]["component"]["version"] = version
with open(target, "w", encoding="utf-8") as f:
    json.dump(sbom, f, indent=1, sort_keys=True)
    f.write("\n")
PYTHON
find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

# What a machine of one kind gets, which is mostly to compress.
packages() { # ARCH PLATFORM
	local arch=$1 name=fairway-$version-linux-$1
	mkdir "$work/$name"
	cp -r "$stage/$arch/fairway" "$stage"/{LICENSE,README.md,licenses,sbom.json,workflow.schema.json,completions,man1} "$work/$name"
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar -C "$work" -c "$name" |
		gzip -9n >"$out/$name.tar.gz"
	sed "s/@ARCH@/$arch/; s/@VERSION@/$version/" scripts/release/nfpm.yaml >"$work/nfpm-$arch.yaml"
	(cd "$work" && "$root/bin/nfpm" package --config "nfpm-$arch.yaml" --packager deb \
		--target "$out/fairway_${version}_$arch.deb" >"$work/deb-$arch.log" 2>&1) || { cat "$work/deb-$arch.log" >&2; exit 1; }
	wheel program "$stage/$arch/fairway" "$2"
}
packages arm64 manylinux_2_17_aarch64 &
other=$!
packages amd64 manylinux_2_17_x86_64
wheel client macosx_11_0_universal2
wheel snakemake
wait "$other"
cp "$stage/sbom.json" "$out/fairway-$version.cdx.json"

cd "$out"
sha256sum *fairway* >SHA256SUMS
ls -l
