#!/bin/sh
# A machine that has no folder in common with this one, and reaches it over a link of
# 1 Gbit/s: a network namespace, whose processes have a /tmp of their own and see nothing
# of /home, /root, /work and /srv. It takes jobs as a batch system does, for a site with
# `system: command`. It needs root.
#
#   apart.sh up NAME          make it, and print the address of this machine there
#   apart.sh down NAME        end what runs there, and remove it
#   apart.sh submit NAME JOB  run the script on standard input as a job
#   apart.sh status NAME      list the jobs that run
#   apart.sh cancel NAME ID   end a job
#   apart.sh site NAME        print the description of a site (sites.yaml)
set -eu
do=${1:?up, down, submit, status, cancel or site} name=${2:?the name of the machine}
folder=${TMPDIR:-/tmp}/apart-$name
hidden='/home /root /work /srv'

# alive NAME: the process of a job, if it is still the same one
alive() {
	[ -e "$folder/jobs/$1" ] || return 1
	read -r pid began <"$folder/jobs/$1"
	[ "$(began "$pid")" = "$began" ]
}

# began PID: when a process was started, which tells it from later ones of its number
began() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

case $do in
up)
	number=$(printf %s "$name" | cksum | cut -d ' ' -f 1)
	subnet=10.$((200 + number % 50)).$((number / 50 % 250))
	here=fw$((number % 1000000))h there=fw$((number % 1000000))n
	(umask 077 && mkdir "$folder" "$folder/jobs" && mkdir -m 1777 "$folder/tmp")
	ip netns add "$name"
	ip link add "$here" type veth peer name "$there" netns "$name"
	ip addr add "$subnet.1/24" dev "$here"
	ip link set "$here" up
	ip -n "$name" addr add "$subnet.2/24" dev "$there"
	ip -n "$name" link set "$there" up
	ip -n "$name" link set lo up
	tc qdisc add dev "$here" root tbf rate 1gbit burst 1mb latency 50ms
	ip netns exec "$name" tc qdisc add dev "$there" root tbf rate 1gbit burst 1mb latency 50ms
	echo "$subnet.1"
	;;
down)
	for job in "$folder"/jobs/*; do
		if alive "${job##*/}"; then kill -9 "-$pid" || :; fi
	done
	ip netns del "$name"
	rm -rf "$folder"
	;;
submit)
	job=${3:?the name of the job}
	(umask 077 && cat >"$folder/$job.script")
	# shellcheck disable=SC2086 # several folders
	setsid nsenter --net="/run/netns/$name" unshare --mount sh -c '
		mount --bind "$0" /tmp
		for place; do if [ -d "$place" ]; then mount -t tmpfs none "$place"; fi; done
		cd / && unset TMPDIR && exec sh' "$folder/tmp" $hidden <"$folder/$job.script" >/dev/null 2>&1 &
	echo "$! $(began $!)" >"$folder/jobs/$job"
	rm "$folder/$job.script"
	;;
status)
	for job in "$folder"/jobs/*; do
		if alive "${job##*/}"; then echo "${job##*/}|$pid|running"; fi
	done
	;;
cancel)
	kill "${3:?the ID of the job}"
	;;
site)
	cat <<SITE
sites:
  $name:
    system: command
    shares: nothing
    max_pilots: 2
    poll: 1s
    command:
      private: true
      submit: [$(realpath "$0"), submit, $name, "{name}"]
      status: [$(realpath "$0"), status, $name]
      job: '(?m)^(?P<name>[^|]*)\|(?P<id>\d+)\|(?P<state>\w+)$'
      states: {running: [running]}
      cancel: [$(realpath "$0"), cancel, $name, "{id}"]
SITE
	;;
esac
