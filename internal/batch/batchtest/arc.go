package batchtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ARC starts a computing element of ARC on this machine, in front of a Slurm, with an
// authority and a user of its own, and has the environment of the test hold the
// credentials of that user. Jobs run as nobody in the queue SlurmPartition. It returns the
// URL of the element. It skips where ARC or Slurm is not installed, and where Required does
// not name it: each change that it tells of takes a minute.
func ARC(t Host) (element string) {
	if err := installed("arcctl", "arcproxy", "arcsub", "arcstat", "arckill", "arched"); err != nil {
		absent(t, "arc", err)
	}
	if !strings.Contains(os.Getenv(Required), "arc") {
		t.Skipf("a long test: make test-arc")
	}
	Slurm(t)
	d := scratch(t, "arc")
	// It asks Slurm how jobs have ended, and not at once.
	run(t, nil, "", "sh", "-ec", `sed -i 's/^MinJobAge=.*/MinJobAge=300/' "$SLURM_CONF"; scontrol reconfigure`)
	certificates, host, user := filepath.Join(d, "certificates"), filepath.Join(d, "host"), filepath.Join(d, "user")
	for _, folder := range []string{certificates, host, user, filepath.Join(d, "home"), filepath.Join(d, "control")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// What it does one at a time, it locks in its folder for temporary files, which is /tmp
	// whatever TMPDIR says: two elements of one machine would keep each other waiting.
	temporary := filepath.Join(d, "tmp")
	if err := errors.Join(os.Mkdir(temporary, 0o755), os.Chmod(temporary, os.ModeSticky|0o777)); err != nil {
		t.Fatal(err)
	}
	element = fmt.Sprintf("https://localhost:%d/arex", freePorts(t, 1))
	settings := filepath.Join(d, "arc.conf")
	write(t, settings, strings.NewReplacer("$D", d, "$URL", element).Replace(arcSettings))
	for name, value := range map[string]string{
		"ARC_CONFIG": settings, "HOME": filepath.Join(d, "home"), "X509_CERT_DIR": certificates,
		"X509_USER_CERT": filepath.Join(user, "usercert.pem"), "X509_USER_KEY": filepath.Join(user, "userkey.pem"),
		"X509_USER_PROXY": filepath.Join(user, "proxy.pem"),
	} {
		t.Setenv(name, value)
	}
	authority := "arcctl -c " + settings + " test-ca --ca-id fairway --ca-dir " + certificates + " "
	run(t, nil, "", "sh", "-ec", "cd "+d+"; "+authority+"init; "+
		authority+"hostcert -n localhost -t; tar xzf hostcert-localhost.tar.gz -C host; "+
		authority+
		"usercert -n fairway -t --no-auth; tar xzf usercert-fairway.tar.gz -C user --strip-components=1; arcproxy; "+
		"openssl dhparam -dsaparam -out control/dhparam.pem 2048") // else it computes some for minutes
	all := &daemons{t: t}
	t.Cleanup(all.end)
	for _, start := range []string{"arc-arex-start", "arc-arex-ws-start"} { // which leave files in TMPDIR
		all.start([]string{"TMPDIR=" + d}, "/usr/share/arc/"+start, "-f")
	}
	until(t, nil, func(string) bool { return true }, "arcsub", "--timeout=2", "--joblist="+filepath.Join(d, "probe"),
		"--computing-element="+element,
		"--submission-endpoint-type=arcrest", "--info-endpoint-type=NONE", `--jobdescrstring=&(executable="/bin/true")(jobname="probe")`)
	return element
}

const arcSettings = `[common]
hostname = localhost
x509_host_key = $D/host/hostkey.pem
x509_host_cert = $D/host/hostcert.pem
x509_cert_dir = $D/certificates
[authgroup:all]
all = yes
[mapping]
map_to_user = all nobody:nogroup
[lrms]
lrms = slurm
slurm_wakeupperiod = 1
slurm_use_sacct = no
[arex]
tmpdir = $D/tmp
controldir = $D/control
sessiondir = $D/session
logfile = $D/arex.log
pidfile = $D/arex.pid
wakeupperiod = 1
[arex/ws]
wsurl = $URL
logfile = $D/ws.log
pidfile = $D/ws.pid
[arex/ws/jobs]
allowaccess = all
[infosys]
logfile = $D/infosys.log
[infosys/glue2]
[infosys/cluster]
[queue:batch]
`
