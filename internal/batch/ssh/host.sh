# What runs on a host, by /bin/sh -s. It is one function, so that a connection that
# breaks in the middle of the text runs nothing of it.
#
# A pilot has a record, LAUNCH.pid: the number of its process, when that began in
# ticks since the start of the machine, and the identity of that start. A number that
# another process has by now, or had before the machine started, is not taken for it.

fairway_say() { printf 'fairway: %s\n' "$*"; }

# fairway_alive RECORD: its process runs. pid is set.
fairway_alive() {
	read -r pid began boot <"$1" || return 1
	[ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || return 1
	state=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) || return 1
	set -- $state
	case $1 in Z | X) return 1 ;; esac
	[ "${20}" = "$began" ]
}

# fairway_do FOLDER VERB LAUNCH...
fairway_do() {
	umask 077
	top=/tmp/fairway-$(id -u)
	mkdir -p "$top"
	if [ -L "$top" ] || [ ! -O "$top" ]; then
		fairway_say "refused $top is not a folder of this user"
		return
	fi
	folder=$top/$1 verb=$2
	shift 2
	if ! mkdir -p "$folder" || ! : >"$folder/.writable"; then
		fairway_say "refused $folder cannot be written to"
		return
	fi
	case $verb in
	list)
		for record in "$folder"/*.pid; do
			[ -e "$record" ] || continue
			launch=${record##*/}
			launch=${launch%.pid}
			if ! fairway_alive "$record"; then
				fairway_say "gone $launch $(tail -n 1 "$folder/$launch.log" 2>/dev/null)"
				rm -f "$folder/$launch".*
			elif [ -e "$folder/$launch.ending" ]; then
				fairway_say "ending $launch"
			else
				touch "$record" # what tidies /tmp by age leaves it
				fairway_say "running $launch"
			fi
		done
		;;
	start)
		for record in "$folder"/*.pid; do
			if [ -e "$record" ] && fairway_alive "$record"; then
				fairway_say "busy ${record##*/}"
				[ "$record" = "$folder/$1.pid" ] && fairway_say "started $1"
				return
			fi
		done
		rm -f "$folder/$1".*
		fairway_script >"$folder/$1.sh" || return
		setsid /bin/sh "$folder/$1.sh" "$folder/$1" >"$folder/$1.log" 2>&1 </dev/null &
		fairway_note "$folder/$1" $! start && fairway_say "started $1"
		;;
	end)
		for launch; do
			record=$folder/$launch.pid
			if [ -e "$record" ] && fairway_alive "$record"; then
				: >"$folder/$launch.ending"
				kill -TERM "$pid"
				kill -CONT "$pid" # or one that stands still would not heed it
			fi
		done
		;;
	esac
}

fairway_host() {
	fairway_do "$@"
	fairway_say done
}
