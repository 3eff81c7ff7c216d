#!/usr/bin/env bash
# Makes a release twice, from two clones at other paths, and compares the bytes. Then it installs what
# is for this machine and runs the workflow of the README with it: the wheel in an environment that
# is empty and on a Debian that has Python and nothing else, the package by dpkg into another root, and
# the tarball.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
work=$(mktemp -d)
trap 'wait; rm -rf "$work"' EXIT

arch=$(go env GOARCH)
# Debian 12 has Python 3.11. It is made while the first release is.
debian=bookworm
scripts/get.sh scripts/bare-debian.sh "$debian" "bin/bare/$debian-$arch.tar" &
making=$!

for clone in one another/place; do
	mkdir -p "$work/$clone"
	git clone -q . "$work/$clone/fairway"
	mkdir "$work/$clone/fairway/bin"
	ln -s "$root"/bin/{nfpm,cyclonedx-gomod,wheel-tools} "$work/$clone/fairway/bin"
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

awk '/^```yaml/ {on = 1; next} /^```/ {on = 0} on' "$root/README.md" >"$work/workflow.yaml"
try() { # PROGRAM: runs the README's workflow
	"$1" --version
	rm -rf "$work/words"
	mkdir "$work/words"
	cp "$work/workflow.yaml" "$work/words/"
	"$1" run "$work/words/workflow.yaml" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
	[ "$(wc -l <"$work/words/results/top.txt")" = 20 ]
}
case $arch in amd64) platform=x86_64 ;; arm64) platform=aarch64 ;; esac

python3 -m venv "$work/venv"
"$root/scripts/get.sh" "$work/venv/bin/pip" -q download --no-deps -d "$work/needed" cloudpickle
"$work/venv/bin/pip" -q install --no-index --find-links "$work/needed" ./fairway_jobs-*"_$platform.whl"
try "$work/venv/bin/fairway"
"$work/venv/bin/python" - <<'PYTHON'
import json, importlib.resources, os, fairway
with fairway.Executor(1) as executor:
    assert executor.submit(os.path.join, "a", "b").result() == "a/b"
json.loads((importlib.resources.files("fairway") / "workflow.schema.json").read_text())
PYTHON

wait "$making"
bare=$work/$debian
mkdir -p "$bare/words"
tar -C "$bare" -xf "$root/bin/bare/$debian-$arch.tar"
cp ./fairway_jobs-*"_$platform.whl" "$work"/needed/*.whl "$bare"
cp "$work/workflow.yaml" "$bare/words"
began=$SECONDS
unshare --mount bash -s "$bare" <<'BARE' || { echo "on a bare Debian ($debian) it failed" >&2; exit 1; }
set -euo pipefail
mount --rbind /dev "$1/dev"
mount --rbind /proc "$1/proc"
chroot "$1" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root bash -euc '
	python3 --version
	python3 -m venv /venv
	/venv/bin/pip -q install --no-index /*.whl
	cd /words
	/venv/bin/fairway run workflow.yaml >said 2>&1 || { cat said; exit 1; }
	[ "$(wc -l <results/top.txt)" = 20 ]
	printf "import operator, fairway\nwith fairway.Executor(1) as executor:\n    assert executor.submit(operator.add, 1, 2).result() == 3\n" |
		/venv/bin/python -'
BARE
took=$((SECONDS - began))
[ "$took" -lt 60 ] || { echo "on a bare Debian ($debian) it took $took s" >&2; exit 1; }
echo "on a bare Debian ($debian): from pip install to results in $took s"

mkdir "$work/root"
dpkg-deb -x fairway_*_"$arch".deb "$work/root"
try "$work/root/usr/bin/fairway"
test -s "$work/root/usr/share/man/man1/fairway-run.1.gz"
test -s "$work/root/usr/share/bash-completion/completions/fairway"
tar -C "$work" -xzf fairway-*-linux-"$arch".tar.gz
try "$work"/fairway-*-linux-"$arch"/fairway
echo "the wheel, the package and the tarball run the README's workflow"
