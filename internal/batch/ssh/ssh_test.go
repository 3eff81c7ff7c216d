package ssh_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fairway/internal/batch"
	"fairway/internal/batch/batchtest"
	"fairway/internal/batch/ssh"
)

// open returns the batch system of some hosts for a state.
func open(t *testing.T, hosts *batchtest.Hosts, state, folder string) *ssh.System {
	t.Helper()
	s, err := ssh.New(ssh.Config{
		Hosts: hosts.Names, Options: hosts.Options, State: state, Folder: folder, Log: slog.New(slog.DiscardHandler),
		Script: func(launch string) (string, error) { return batchtest.Script(folder, launch), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// state is the identity of a state that no other test has. What its pilots leave on this
// machine is removed.
func state(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")) + strconv.Itoa(os.Getpid())
	t.Cleanup(func() { _ = os.RemoveAll(records(name)) })
	return name
}

func records(state string) string {
	return filepath.Join(fmt.Sprintf("/tmp/fairway-%d", os.Getuid()), "pilots", state)
}

func TestSSH(t *testing.T) {
	hosts := batchtest.SSH(t, 2)
	batchtest.Run(t, func(t *testing.T) batchtest.Opened {
		folder := batchtest.OddFolder(t)
		return batchtest.Opened{
			System: open(t, hosts, state(t), folder),
			Other:  open(t, hosts, state(t)+"/other", t.TempDir()),
			Folder: folder,
		}
	})
}

// started is a system with a pilot that runs, and the number of its process.
func started(t *testing.T, hosts *batchtest.Hosts, state, folder string) (s *ssh.System, process int) {
	t.Helper()
	s = open(t, hosts, state, folder)
	if err := s.Submit(t.Context(), "l-1"); err != nil {
		t.Fatal(err)
	}
	o := batchtest.Opened{System: s, Folder: folder}
	text, err := os.ReadFile(o.Await(t, "l-1.began"))
	if err == nil {
		process, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("kill", "-KILL", strconv.Itoa(process)).Run() })
	return s, process
}

func mustStatus(t *testing.T, s batch.System, want map[string]batch.State) {
	t.Helper()
	found, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]batch.State{}
	for launch, status := range found {
		got[launch] = status.State
		if status.State != batch.Gone && status.Jobs != 1 {
			t.Errorf("%s has %d jobs", launch, status.Jobs)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("status %v, want %v", got, want)
	}
}

// A pilot must not end with the connection that started it, and a later server must find
// it, also one that has lost its folder.
func TestPilotOutlivesItsLogin(t *testing.T) {
	hosts := batchtest.SSH(t, 2)
	id, folder := state(t), t.TempDir()
	first, process := started(t, hosts, id, folder)
	hosts.Stop(0)
	if err := exec.Command("kill", "-0", strconv.Itoa(process)).Run(); err != nil {
		t.Fatal("the pilot ended with the connection:", err)
	}
	// It may run on a host that does not answer.
	mustStatus(t, first, map[string]batch.State{"l-1": batch.Running})
	hosts.Stop(1)
	if _, err := first.Status(t.Context()); err == nil {
		t.Error("no host answers, and nobody says so")
	}
	hosts.Start(0)
	hosts.Start(1)
	for name, folder := range map[string]string{"the same folder": folder, "another folder": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			mustStatus(t, open(t, hosts, id, folder), map[string]batch.State{"l-1": batch.Running})
		})
	}
}

// A process that got the number of a pilot that has ended must not be taken for it, let
// alone ended.
func TestNumberOfAnotherProcess(t *testing.T) {
	hosts := batchtest.SSH(t, 1)
	id := state(t)
	s, process := started(t, hosts, id, t.TempDir())
	files, _ := filepath.Glob(filepath.Join(records(id), "*", "l-1.pid"))
	if len(files) != 1 {
		t.Fatal("records:", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	if len(fields) != 3 || fields[0] != strconv.Itoa(process) {
		t.Fatalf("the record is %q, and the process %d", text, process)
	}
	for name, record := range map[string]string{
		"later process": fields[0] + " 1 " + fields[2], "other start of the machine": fields[0] + " " + fields[1] + " 0-0",
		"cut short": fields[0], "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(files[0], []byte(record+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.Withdraw(t.Context(), "l-1"); err != nil {
				t.Fatal(err)
			}
			if err := exec.Command("kill", "-0", strconv.Itoa(process)).Run(); err != nil {
				t.Fatal("another process was ended:", err)
			}
			mustStatus(t, s, map[string]batch.State{"l-1": batch.Gone})
		})
	}
}

// A host that refuses must be named with what to do, and not keep the others from taking
// pilots.
func TestHostsThatRefuse(t *testing.T) {
	hosts := batchtest.SSH(t, 3)
	for name, test := range map[string]struct {
		options []string
		want    string
	}{
		"key":        {[]string{"PubkeyAuthentication=no"}, "ssh-copy-id"},
		"host key":   {[]string{"UserKnownHostsFile=/dev/null"}, "log in once with `ssh ssh://127.0.0.1"},
		"option":     {[]string{"NoSuchOption=1"}, "mend `options`"},
		"no server":  {[]string{"ProxyCommand=false"}, "ssh -o BatchMode=yes"},
		"no program": {[]string{"ProxyCommand=/no/such/program"}, "ssh -o BatchMode=yes"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := *hosts
			bad.Options = append(append(test.options, "ControlPath=none", "ControlMaster=no"), hosts.Options...)
			s := open(t, &bad, state(t), t.TempDir())
			if _, err := s.Status(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("status: %v", err)
			}
			if err := s.Submit(t.Context(), "l-1"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("submission: %v", err)
			}
		})
	}
	t.Run("others go on", func(t *testing.T) {
		some := *hosts
		some.Names = append([]string{"no-such-host.invalid"}, hosts.Names...)
		hosts.Stop(0)
		s, _ := started(t, &some, state(t), t.TempDir())
		mustStatus(t, s, map[string]batch.State{"l-1": batch.Running})
		if err := s.Submit(t.Context(), "l-2"); err != nil {
			t.Error(err)
		}
		err := s.Submit(t.Context(), "l-3")
		for _, want := range []string{"no-such-host.invalid", "no host of that name", hosts.Names[0]} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("with two hosts for three pilots: %v; want %q", err, want)
			}
		}
		if err := s.Withdraw(t.Context(), "l-2"); err != nil {
			t.Error(err)
		}
	})
}

// What a host prints when somebody logs in must not be read as its answer.
func TestNoiseOfTheLogin(t *testing.T) {
	hosts := batchtest.SSH(t, 1)
	for name, command := range map[string]string{
		"greeting":   `command="echo Welcome; echo; echo fairway; eval \"$SSH_ORIGINAL_COMMAND\""`,
		"no command": `command="echo Only sftp is allowed here; exit 1"`,
	} {
		t.Run(name, func(t *testing.T) {
			key, err := os.ReadFile(filepath.Join(hosts.Folder, "id.pub"))
			if err == nil {
				err = os.WriteFile(filepath.Join(hosts.Folder, "authorized_keys"), []byte(command+" "+string(key)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			apart := *hosts
			apart.Options = append([]string{"ControlPath=none", "ControlMaster=no"}, hosts.Options...)
			found, err := open(t, &apart, state(t), t.TempDir()).Status(t.Context())
			if name == "greeting" && (err != nil || len(found) != 0) {
				t.Error(found, err)
			}
			if name == "no command" && err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestNamesOfHosts(t *testing.T) {
	for text, want := range map[string]bool{
		"node1": true, "me@node1.site.org": true, "ssh://me@node1:2222": true, "10.0.0.1": true, "[::1]": true,
		"fe80::1%eth0":     true,
		"-oProxyCommand=x": false, "a b": false, "": false, "node;rm": false, "a@-b": false, "$(x)": false, "a\nb": false,
	} {
		if ssh.IsHost(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
