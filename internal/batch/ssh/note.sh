# fairway_note PILOT PROCESS BY: writes the record PILOT.pid. The shell that starts a
# process does that, and the process itself, so that there is one however early either of
# them ends.
fairway_note() {
	set -- "$1" "$2" "$3" $(sed 's/.*) //' "/proc/$2/stat")
	printf '%s %s %s\n' "$2" "${23}" "$(cat /proc/sys/kernel/random/boot_id)" >"$1.$3" && mv -f "$1.$3" "$1.pid"
}
