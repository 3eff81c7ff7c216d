package netns

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Apart are places for [Network.Add] by which a host shares no folder with this machine:
// it has a /tmp of its own and sees nothing of /home, /root, /srv and /work.
func Apart() map[string]string {
	places := map[string]string{"/tmp": "tmp"}
	for _, place := range []string{"/home", "/root", "/srv", "/work"} {
		if _, err := os.Stat(place); err == nil {
			places[place] = "empty"
		}
	}
	return places
}

// batch is the command of a batch system. Its folder has a program for each host, which
// runs its arguments there, and files for each job.
const batch = `#!/bin/sh
set -eu
do=$1 folder=${0%/*}
case $do in
submit)
	job=$2
	cat >"$folder/$job.script"
	for place in $(cat "$folder/places"); do
		mkdir "$folder/$place.taken" 2>/dev/null || continue
		unset TMPDIR
		setsid "$folder/${place%.*}" sh <"$folder/$job.script" >"$folder/$job.out" 2>&1 &
		echo $! >"$folder/$job.job"
		exit
	done
	echo "all hosts are taken" >&2
	exit 1
	;;
status)
	for f in "$folder"/*.job; do
		[ -e "$f" ] || continue
		read -r pid <"$f"
		if kill -0 "$pid" 2>/dev/null; then job=${f##*/}; echo "${job%.job}|$pid|running"; fi
	done
	;;
cancel)
	kill "$2" 2>/dev/null || :
	;;
esac
`

// description is that of a batch system, for a file of sites.
const description = `system: command
    max_pilots: PLACES
    min_pilots: PLACES
    poll: 1s
    command:
      private: true
      submit: [PROGRAM, submit, "{name}"]
      status: [PROGRAM, status]
      job: '(?m)^(?P<name>[^|]*)\|(?P<id>\d+)\|(?P<state>\w+)$'
      states: {running: [running]}
      cancel: [PROGRAM, cancel, "{id}"]`

// Batch makes a batch system with so many places on each of the hosts. A place takes one
// job and never another. Batch returns the folder of the batch system, where JOB.out is
// what a job has printed, and the keys of a site that has a pilot at each place, for a
// file of sites in which those stand behind four blanks.
func (n *Network) Batch(hosts []*Host, slots int) (folder, site string) {
	folder = n.t.TempDir()
	program := filepath.Join(folder, "batch")
	var places []string
	err := os.WriteFile(program, []byte(batch), 0o755)
	for _, h := range hosts {
		quoted := "'" + strings.Join(h.words(), "' '") + "'"
		err = errors.Join(err,
			os.WriteFile(filepath.Join(folder, h.Name), []byte("#!/bin/sh\ncd /\nexec "+quoted+" \"$@\"\n"), 0o755))
	}
	for slot := range slots {
		for _, h := range hosts {
			places = append(places, h.Name+"."+strconv.Itoa(slot))
		}
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(folder, "places"), []byte(strings.Join(places, "\n")), 0o644))
	if err != nil {
		n.t.Fatal(err)
	}
	return folder, strings.NewReplacer("PLACES", strconv.Itoa(len(places)), "PROGRAM", program).Replace(description)
}
