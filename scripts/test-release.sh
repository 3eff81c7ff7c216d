#!/usr/bin/env bash
# Makes a release twice, from two clones at other paths, and compares the bytes. Then it installs what
# is for this machine and runs the workflow of the README with it: the wheel in an environment that
# is empty, the package by dpkg into another root, and the tarball.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for clone in one another/place; do
	mkdir -p "$work/$clone"
	git clone -q . "$work/$clone/fairway"
	mkdir "$work/$clone/fairway/bin"
	cp bin/nfpm bin/cyclonedx-gomod "$work/$clone/fairway/bin"
	"$work/$clone/fairway/scripts/release.sh" "$work/$clone/release"
done
diff -r "$work/one/release" "$work/another/place/release"
echo "both releases are the same bytes"

cd "$work/one/release"
sha256sum --quiet -c SHA256SUMS
for wheel in *.whl; do
	size=$(stat -c %s "$wheel")
	[ "$size" -lt 25000000 ] || { echo "$wheel has $size bytes" >&2; exit 1; }
done

try() { # PROGRAM: runs the README's workflow
	"$1" --version
	rm -rf "$work/words"
	mkdir "$work/words"
	awk '/^```yaml/ {on = 1; next} /^```/ {on = 0} on' "$OLDPWD/README.md" >"$work/words/workflow.yaml"
	"$1" run "$work/words/workflow.yaml" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
	[ "$(wc -l <"$work/words/results/top.txt")" = 20 ]
}
arch=$(go env GOARCH)
case $arch in amd64) platform=x86_64 ;; arm64) platform=aarch64 ;; esac

python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --no-index ./fairway-*"_$platform.whl"
try "$work/venv/bin/fairway"
"$work/venv/bin/python" - <<'PYTHON'
import json, importlib.resources, os, fairway
with fairway.Executor(1) as executor:
    assert executor.submit(os.path.join, "a", "b").result() == "a/b"
json.loads((importlib.resources.files("fairway") / "workflow.schema.json").read_text())
PYTHON

mkdir "$work/root"
dpkg-deb -x fairway_*_"$arch".deb "$work/root"
try "$work/root/usr/bin/fairway"
test -s "$work/root/usr/share/man/man1/fairway-run.1.gz"
test -s "$work/root/usr/share/bash-completion/completions/fairway"
tar -C "$work" -xzf fairway-*-linux-"$arch".tar.gz
try "$work"/fairway-*-linux-"$arch"/fairway
echo "the wheel, the package and the tarball run the README's workflow"
