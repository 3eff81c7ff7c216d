package sites_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/test/files"
)

// The users and the group of the pilots of a site whose batch system has a user for each.
const (
	firstUser = 64101
	userGroup = 64100
)

// otherUsers is the description of a site with two pilots, on this machine and with one cache, each
// as another user of one group. The batch system is processes: it submits by the program.
const otherUsers = `sites:
  farm:
    system: command
    shares: nothing
    cache: host
    share_cache: %s
    max_pilots: 2
    min_pilots: 2
    poll: 200ms
    has: {place: 1}
    scratch: %s
    command:
      private: true
      submit: [%s, "{name}"]
      status: [sh, -c, 'while read name id; do kill -0 $id 2>/dev/null && echo "$name $id runs"; done < "$0"; true', %[4]s]
      job: '(?m)^(?P<name>\S+) (?P<id>\d+) (?P<state>\S+)$'
      states: {running: [runs]}
      cancel: [kill, "{id}"]
`

// submitAsUser starts the script on its standard input as the next user, of which each job takes
// one.
const submitAsUser = `#!/bin/sh
script=%[1]s/$1.sh
cat >"$script"
user=$((%[2]d + $(wc -l <%[1]s/submitted)))
chown "$user" "$script"
cd /
HOME=/ TMPDIR=%[3]s setsid setpriv --reuid="$user" --regid=%[4]d --clear-groups sh "$script" >"$script.out" 2>&1 </dev/null &
echo "$1 $!" >>%[1]s/submitted
`

// shared has two jobs at a time, of which each is at another pilot and reads the same files.
const shared = `workflow: shared
inputs:
  in: {files: in.txt, as: in.txt}
steps:
  first:
    reads: in.txt
    writes: made.txt
    needs: {place: 1}
    command: cat in.txt in.txt > "$out"
  both:
    times: 2
    reads: [in.txt, made.txt]
    needs: {place: 1}
    writes: 'both/{number}.txt'
    command: |
      touch "%[1]s/$number"
      while ! [ -e "%[1]s/1" ] || ! [ -e "%[1]s/2" ]; do sleep 0.05; done
      id -u > "$out"
      cat in.txt made.txt >> "$out"
`

// Pilots of two users on one machine share a cache if the site says so: a file is read from
// storage once, and what one user's job makes the other's job reads from there.
func TestUsersOfAGroupShareACache(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs several users: run it as root")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip(err)
	}
	for share, misses := range map[string]int{"group": 1, "user": 3} {
		t.Run(share, func(t *testing.T) {
			met, err := os.MkdirTemp("", "farm")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(met) })
			scratch, submit := filepath.Join(met, "scratch"), filepath.Join(met, "submit")
			text := fmt.Sprintf(submitAsUser, met, firstUser, scratch, userGroup)
			for _, err := range []error{
				os.Chmod(met, 0o755), os.Mkdir(scratch, 0o777), os.Chmod(scratch, 0o777|os.ModeSticky),
				os.Mkdir(filepath.Join(met, "seen"), 0o777), os.Chmod(filepath.Join(met, "seen"), 0o777),
				os.WriteFile(submit, []byte(text), 0o755), os.WriteFile(filepath.Join(met, "submitted"), nil, 0o644),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			folder := t.TempDir()
			files.Write(t, filepath.Join(folder, "in.txt"), strings.Repeat("text\n", 1000))
			files.Write(t, filepath.Join(folder, "workflow.yaml"), fmt.Sprintf(shared, filepath.Join(met, "seen")))
			described := fmt.Sprintf(otherUsers, share, scratch, submit, filepath.Join(met, "submitted"))
			if share == "user" { // each user has a folder of their own, as in $TMPDIR
				described = strings.Replace(described, "scratch: "+scratch, "scratch: $TMPDIR", 1)
				own := strings.Replace(text, "TMPDIR="+scratch, "TMPDIR="+scratch+"/$user", 1)
				own = strings.Replace(own, "cd /\n", "cd /\nmkdir -m 700 "+scratch+"/$user && chown $user "+scratch+"/$user\n", 1)
				files.Write(t, submit, own)
			}
			files.Write(t, filepath.Join(folder, "sites.yaml"), described)
			said, err := command(t, folder, "run", "--site", "farm", "--listen", "127.0.0.1:0", "--json").Output()
			if err != nil {
				t.Fatalf("%v: %s\n%s", err, said, pilotLogs(folder))
			}
			var result struct {
				Summary struct {
					Misses int `json:"cache_misses"`
					Hits   int `json:"cache_hits"`
				} `json:"summary"`
			}
			if err := json.Unmarshal(said, &result); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if got := result.Summary; got.Misses != misses || got.Hits != 5-misses {
				t.Errorf("%d inputs were read from storage, and %d from the cache", got.Misses, got.Hits)
			}
			users := map[string]bool{}
			for _, path := range below(folder, "results/both/*.txt") {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				user, rest, _ := strings.Cut(string(text), "\n")
				users[user] = true
				if rest != strings.Repeat("text\n", 3000) {
					t.Errorf("%s holds %d bytes, which are others", path, len(rest))
				}
			}
			if len(users) != 2 || !users[fmt.Sprint(firstUser)] || !users[fmt.Sprint(firstUser+1)] {
				t.Errorf("the users were %v", users)
			}
			for _, left := range below(scratch, "fairway-*") { // pilots remove theirs after they have left
				isGone(t, left)
			}
		})
	}
}

// isGone waits until a path names nothing any more.
func isGone(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	gone := func(f sched.FileState) bool { return f.Info == nil }
	if _, err := sched.Default().WaitFile(ctx, sched.FileQuery{Path: path, Until: gone}); err != nil {
		t.Errorf("%s is left: %v", path, err)
	}
}
