package batchtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// GridEngine starts Grid Engine with one host on this machine, and has the environment
// of the test name it. It skips where Grid Engine is not installed.
func GridEngine(t Host) {
	if err := installed("sge_qmaster", "sge_execd", "qconf", "qsub", "qstat", "qdel"); err != nil {
		absent(t, "gridengine", err)
	}
	d := scratch(t, "gridengine")
	root := filepath.Join(d, "root")
	common := filepath.Join(root, "default", "common")
	if err := os.MkdirAll(common, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/share/gridengine/util", filepath.Join(root, "util")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bin", "lib", "utilbin"} {
		run(t, nil, "", "cp", "-a", "/var/lib/gridengine/"+folder, root)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	port := freePorts(t, 2)
	// Another Grid Engine of this machine has jobs of the same numbers. It must not have
	// the same folders for them, nor the same groups, by which it kills what is left of one.
	groups := fmt.Sprintf("%d-%d", 100*port, 100*port+99)
	fill := func(text string) string {
		return strings.NewReplacer("$D", d, "$SLOTS", fmt.Sprint(GridEngineSlots)).Replace(text)
	}
	write(t, filepath.Join(common, "bootstrap"), fill(bootstrap))
	write(t, filepath.Join(common, "act_qmaster"), "localhost\n")
	write(t, filepath.Join(common, "host_aliases"), "localhost "+host+"\n")
	for name, value := range map[string]string{
		"SGE_ROOT": root, "SGE_CELL": "default", "SGE_QMASTER_PORT": fmt.Sprint(port), "SGE_EXECD_PORT": fmt.Sprint(port + 1),
		// Debian's wrappers look up the cell; the programs themselves are ten times faster.
		"PATH": "/usr/lib/gridengine:" + os.Getenv("PATH"),
	} {
		t.Setenv(name, value)
	}
	for _, folder := range []string{"spooldb", "qmaster", "execd", "tmp"} {
		if err := os.MkdirAll(filepath.Join(d, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(t, nil, "", "/usr/share/gridengine/scripts/init_cluster", root, "default", filepath.Join(d, "spooldb"), "root")
	all := &daemons{t: t}
	t.Cleanup(all.end)
	foreground := []string{"SGE_ND=1"}
	all.start(foreground, "sge_qmaster")
	until(t, nil, func(string) bool { return true }, "qconf", "-sh")
	for _, host := range []string{"localhost", host} {
		run(t, nil, "", "sh", "-c", "qconf -as "+host+" || true; qconf -ah "+host+" || true")
	}
	configure := func(option, name, text string) {
		path := filepath.Join(d, "set", name)
		write(t, path, fill(text))
		run(t, nil, "", "qconf", option, path)
	}
	run(t, nil, "", "sh", "-c", "qconf -sconf | sed -e 's/^min_uid.*/min_uid 0/; s/^min_gid.*/min_gid 0/; "+
		"s#^execd_spool_dir.*#execd_spool_dir "+d+"/execd#; s/^gid_range.*/gid_range "+groups+
		"/; s/^reporting_params.*/reporting_params accounting=false reporting=false flush_time=00:00:01 joblog=false "+
		"sharelog=00:00:00/; s/^administrator_mail.*/administrator_mail none/' > "+d+"/global && cd "+d+
		" && qconf -Mconf global")
	run(t, nil, "", "sh", "-c", "qconf -ssconf | sed -e 's/^schedule_interval.*/schedule_interval 0:0:1/; "+
		"s/^flush_submit_sec.*/flush_submit_sec 1/; s/^flush_finish_sec.*/flush_finish_sec 1/' > "+d+
		"/sched && qconf -Msconf "+d+"/sched")
	configure("-Ahgrp", "hosts", "group_name @allhosts\nhostlist localhost\n")
	configure("-Ap", "pe", environment)
	configure("-Ap", "pe-tasks", strings.NewReplacer("pe_name smp", "pe_name "+GridEngineTasks, "control_slaves FALSE",
		"control_slaves TRUE",
		"job_is_first_task TRUE", "job_is_first_task FALSE", "$pe_slots", "$round_robin").Replace(environment))
	configure("-Aq", "queue", queueSettings)
	all.start(foreground, "sge_execd")
	until(t, nil, func(out string) bool {
		return strings.Contains(out, "all.q@") && !strings.Contains(out, "au\n") && !strings.Contains(out, "-NA-")
	}, "qstat", "-f")
	t.Cleanup(func() { run(t, nil, "", "sh", "-c", "qdel -u '*' || true") })
}

const bootstrap = `admin_user root
default_domain none
ignore_fqdn true
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params $D/spooldb
binary_path /usr/sbin
qmaster_spool_dir $D/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
`

const environment = `pe_name smp
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args /bin/true
stop_proc_args /bin/true
allocation_rule $pe_slots
control_slaves FALSE
job_is_first_task TRUE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
`

const queueSettings = `qname all.q
hostlist @allhosts
seq_no 0
load_thresholds NONE
suspend_thresholds NONE
nsuspend 1
suspend_interval 00:05:00
priority 0
min_cpu_interval 00:05:00
processors UNDEFINED
qtype BATCH INTERACTIVE
ckpt_list NONE
pe_list smp tasks
rerun FALSE
slots $SLOTS
tmpdir $D/tmp
shell /bin/sh
prolog NONE
epilog NONE
shell_start_mode posix_compliant
starter_method NONE
suspend_method NONE
resume_method NONE
terminate_method NONE
notify 00:00:03
owner_list NONE
user_lists NONE
xuser_lists NONE
subordinate_list NONE
complex_values NONE
projects NONE
xprojects NONE
calendar NONE
initial_state default
s_rt INFINITY
h_rt INFINITY
s_cpu INFINITY
h_cpu INFINITY
s_fsize INFINITY
h_fsize INFINITY
s_data INFINITY
h_data INFINITY
s_stack INFINITY
h_stack INFINITY
s_core INFINITY
h_core INFINITY
s_rss INFINITY
h_rss INFINITY
s_vmem INFINITY
h_vmem INFINITY
`
