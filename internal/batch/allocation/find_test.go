package allocation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recorded answers as the programs of batch systems did.
func recorded(answers map[string]string) func(argv ...string) (string, error) {
	return func(argv ...string) (string, error) {
		for begin, answer := range answers {
			if strings.HasPrefix(strings.Join(argv, " "), begin) {
				return answer, nil
			}
		}
		return "", errors.New("exit status 1")
	}
}

func environmentOf(settings map[string]string) func(string) string {
	return func(name string) string { return settings[name] }
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A node that is not found stays idle, and one that is given too many processors computes
// on those of others.
func TestFind(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Minute).Format("2006-01-02T15:04:05")
	for name, test := range map[string]struct {
		environment map[string]string
		answers     map[string]string
		want        string
		most        int64         // processors of a pilot before one has come
		left        time.Duration // at most, and at least a minute less
	}{
		"slurm": {
			map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3],m4", "SLURM_JOB_CPUS_PER_NODE": "16(x3),8"},
			map[string]string{"scontrol show hostnames n[1-3],m4": "n1\nn2\nn3\nm4\n", "squeue --noheader --jobs=7": "1-00:00:10\n", "srun --help": "  --overlap  "},
			"slurm 7 [{n1 16} {n2 16} {n3 16} {m4 8}]", 16, 24*time.Hour + 10*time.Second,
		},
		"slurm without a limit": {
			map[string]string{"SLURM_JOB_ID": "7", "SLURM_NODELIST": "n1"},
			map[string]string{"scontrol show hostnames n1": "n1\n", "squeue": "UNLIMITED\n"},
			"slurm 7 [{n1 1}]", 1, 0,
		},
		"slurm, daemon away": {
			map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_CPUS_PER_NODE": "4"},
			map[string]string{"scontrol": "n1\n"},
			"slurm 7 [{n1 4}]", 4, 0,
		},
		"grid engine": {
			map[string]string{"JOB_ID": "12", "PE_HOSTFILE": fileOf(t, "a.site 4 all.q@a UNDEFINED\nb.site 2 all.q@b <NULL>\na.site 1 long.q@a UNDEFINED\n")},
			map[string]string{
				"qstat -j 12": "job_number:                 12\nhard resource_list:         h_rt=3600,h_vmem=1G\n",
				"qstat -xml":  "<job_list state=\"running\"><JB_job_number>11</JB_job_number><JAT_start_time>2001-01-01T00:00:00</JAT_start_time></job_list><job_list state=\"running\"><JB_job_number>12</JB_job_number><JB_name>x</JB_name><JAT_start_time>" + began + "</JAT_start_time></job_list>",
			},
			"gridengine 12 [{a.site 5} {b.site 2}]", 5, 59 * time.Minute,
		},
		"grid engine, one slot": {
			map[string]string{"JOB_ID": "12", "SGE_ROOT": "/sge"}, nil, "gridengine 12 [{" + hostname + " 1}]", 1, 0,
		},
		"pbs": {
			map[string]string{"PBS_JOBID": "5.head", "NCPUS": "8", "PBS_NODEFILE": fileOf(t, "n1\nn2\n")},
			map[string]string{"qstat -f 5.head": "Job Id: 5.head\n    Resource_List.walltime = 02:00:00\n    resources_used.walltime = 00:30:00\n"},
			"pbs 5.head [{n1 8} {n2 8}]", 8, 90 * time.Minute,
		},
		"pbs, processes": {
			map[string]string{"PBS_JOBID": "5", "NCPUS": "1", "PBS_NODEFILE": fileOf(t, "n1\nn1\nn2\n\n")}, nil,
			"pbs 5 [{n1 2} {n2 1}]", 1, 0,
		},
	} {
		a, err := find(environmentOf(test.environment), recorded(test.answers))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(a.Kind, " ", a.Job, " ", a.Nodes); got != test.want || a.CPUs() != test.most {
			t.Errorf("%s: %s with %d, want %s with %d", name, got, a.CPUs(), test.want, test.most)
		}
		left, ends := a.Left()
		if ends != (test.left > 0) || left > test.left || ends && left < test.left-time.Minute {
			t.Errorf("%s: %v left, %v; want %v", name, left, ends, test.left)
		}
	}
}

// What is wrong in the environment must be said, and not taken for one node.
func TestFindsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		environment map[string]string
		answers     map[string]string
		want        string
	}{
		"nowhere":      {nil, nil, "not inside a job"},
		"no scontrol":  {map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1"}, nil, "scontrol"},
		"no nodes":     {map[string]string{"SLURM_JOB_ID": "7"}, map[string]string{"scontrol": "\n"}, "no nodes"},
		"nonsense":     {map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_CPUS_PER_NODE": "4(x999999999)"}, map[string]string{"scontrol": "n1\n"}, "4(x999999999)"},
		"no file":      {map[string]string{"PBS_NODEFILE": "/no/such/file"}, nil, "/no/such/file"},
		"empty file":   {map[string]string{"PBS_NODEFILE": fileOf(t, "")}, nil, "no nodes"},
		"hosts only":   {map[string]string{"PE_HOSTFILE": fileOf(t, "a\n")}, nil, `has the line "a"`},
		"not a number": {map[string]string{"PE_HOSTFILE": fileOf(t, "a x q u\n")}, nil, "x"},
	} {
		_, err := find(environmentOf(test.environment), recorded(test.answers))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}
