#!/usr/bin/env bash
# Runs the targets of the Makefile that test Fairway with what other people made: batch systems,
# storage, databases, tools. It goes on after a failure and ends with a table.
#
#	scripts/test-targets.sh all               every target
#	scripts/test-targets.sh share BEFORE END  a quarter of them, which the hash of the tree chooses and
#	                                          puts in order; none begins when the script has run for
#	                                          BEFORE seconds, and it ends with END
#	scripts/test-targets.sh list all|share    the names alone
#
# What fails, or takes longer than LIMIT seconds (720), is run once more. The exit code is 1 if it fails
# again. A target whose recipe ends with 75 cannot be had on this machine: it is skipped, and so is what
# END leaves no time for.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
limit=${LIMIT:-720}
logs=bin/test-targets

targets() {
	sed -n 's/^\(test-[a-z-]*\):.*/\1/p' Makefile | grep -vx -e test-tools -e test-all -e test-suites | sort
}

# share is another quarter, in another order, for each tree, so that in time every target comes first. One installs
# much, and one runs other tests for each tree, each by two programs: they take longer than the check has, or may.
share() {
	local tree
	tree=$(git rev-parse 'HEAD^{tree}')
	targets | grep -vx -e test-pigx -e test-suites-snakemake | while read -r target; do
		echo "$(sha256sum <<<"$tree $target") $target"
	done | sort | awk '{print $NF}' | head -n $((($(targets | wc -l) + 3) / 4))
}

# attempt runs a target and prints how it ended: ok, failed, too-long, skipped or no-time.
attempt() {
	local log=$logs/$1.log left=$((end - SECONDS)) code=0
	((left > 0)) || { echo no-time; return; }
	# At SIGQUIT tests of Go say where they stand.
	timeout --signal=QUIT --kill-after=10 $((left < limit ? left : limit)) \
		make --no-print-directory "$1" >"$log" 2>&1 </dev/null || code=$?
	if ((code == 0)); then
		echo ok
	elif ((code != 124 && code != 137)); then
		if grep -q '^make.*\*\*\*.* Error 75$' "$log"; then echo skipped; else echo failed; fi
	elif ((left < limit)); then
		echo no-time
	else
		echo too-long
	fi
}

case "$# ${1-} ${2-} ${3-}" in
"2 list all "*) targets; exit ;;
"2 list share "*) share; exit ;;
"1 all "*) chosen=$(targets) before=$((1 << 30)) end=$((1 << 30)) ;;
"3 share "[0-9]*" "[0-9]*) chosen=$(share) before=$2 end=$3 ;;
*) sed -n 's/^#\t/usage: /p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

mkdir -p "$logs"
failed=0
table="TARGET RESULT SECONDS"
for target in $chosen; do
	began=$SECONDS
	if ((began >= before)); then
		result=not-begun
	else
		echo "make $target"
		result=$(attempt "$target")
	fi
	case $result in
	failed | too-long)
		tail -n 60 "$logs/$target.log"
		cp "$logs/$target.log" "$logs/$target.first.log"
		echo "$target: $result after $((SECONDS - began)) s; once more: make $target"
		result=$result-then-$(attempt "$target")
		;;
	esac
	case $result in
	*-then-failed | *-then-too-long)
		failed=1
		tail -n 200 "$logs/$target.log"
		echo "$target: failed twice; to repeat it: make $target"
		;;
	skipped)
		tail -n 5 "$logs/$target.log"
		echo "$target: skipped, it cannot be had here; to repeat it: make $target"
		;;
	esac
	table+=$'\n'"$target $result $((SECONDS - began))"
done
awk '{printf "%-18s %-20s %s\n", $1, $2, $3}' <<<"$table"
exit "$failed"
