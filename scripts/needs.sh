#!/usr/bin/env bash
# Ends with 75, and says why, where this machine does not let the caller do what a target stands on:
# needs.sh network-namespace|mount
set -uo pipefail
case ${1-} in
network-namespace)
	unshare --net --mount sh -ec 'ip link add one type veth peer name two
		tc qdisc add dev one root tbf rate 1gbit burst 1mb latency 50ms' ;;
mount) unshare --mount true ;;
*) echo "usage: needs.sh network-namespace|mount" >&2; exit 2 ;;
esac || { echo "needs: no $1 can be made here; it may need root" >&2; exit 75; }
