#!/usr/bin/env bash
# Runs the targets of the Makefile that test Fairway with what other people made: batch systems,
# storage, databases, tools. It goes on after a failure and ends with a table.
#
#	scripts/test-targets.sh all           every target
#	scripts/test-targets.sh share BEFORE  a quarter of them, chosen by the hash of the tree; none begins
#	                                      when the script has run for BEFORE seconds
#	scripts/test-targets.sh list share    the names alone
#
# The exit code is 1 if a target failed or took longer than LIMIT seconds (720).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
limit=${LIMIT:-720}

# share keeps every fourth line, from one that the tree decides.
share() {
  local tree
  tree=$(git rev-parse 'HEAD^{tree}' | cut -c1-7)
  awk -v from=$((0x$tree % 4)) 'NR % 4 == from'
}

targets() {
  sed -n 's/^\(test-[a-z-]*\):.*/\1/p' Makefile | grep -vx -e test-tools -e test-all | sort |
    if [ "$1" = share ]; then share; else cat; fi
}

case "${1-} ${2-}" in
  "list all" | "list share") targets "$2"; exit ;;
  "all "*) chosen=$(targets all) before=$((24 * 3600)) ;;
  "share "[0-9]*) chosen=$(targets share) before=$2 ;;
  *) echo "usage: scripts/test-targets.sh all | share SECONDS | list all | list share" >&2; exit 2 ;;
esac

logs=bin/test-targets
mkdir -p "$logs"
failed=0
table="TARGET RESULT SECONDS"
for target in $chosen; do
  if [ "$SECONDS" -ge "$before" ]; then
    table+=$'\n'"$target not-begun 0"
    continue
  fi
  echo "make $target"
  began=$SECONDS
  if timeout --kill-after=30 "$limit" make --no-print-directory "$target" >"$logs/$target.log" 2>&1 </dev/null; then
    result=ok
  else
    code=$?
    result=failed
    [ "$code" != 124 ] || result=too-long
    failed=1
    tail -n 60 "$logs/$target.log"
  fi
  table+=$'\n'"$target $result $((SECONDS - began))"
done
echo "$table" | column -t
exit "$failed"
