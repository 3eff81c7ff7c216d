package pilot

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"fairway/internal/pilot/process"
	"fairway/internal/wire"
)

// The environment of a command, besides Payload.environment, which comes last
// and wins, and what the pilot itself was started with.
const (
	JobVariable      = "FAIRWAY_JOB"       // number of the job
	NameVariable     = "FAIRWAY_NAME"      // name of the job
	StepVariable     = "FAIRWAY_STEP"      // name of the step
	TryVariable      = "FAIRWAY_TRY"       // 1 for the first attempt of the job
	SandboxVariable  = "FAIRWAY_SANDBOX"   // the working folder, absolute
	CPUsVariable     = "FAIRWAY_CPUS"      // processors that the command may use, a whole number from 1
	MemoryVariable   = "FAIRWAY_MEMORY"    // bytes of memory that it may use
	DeadlineVariable = "FAIRWAY_DEADLINE"  // Unix time in seconds at which the attempt is ended; empty without a limit
	TimeVariable     = "FAIRWAY_TIME_LEFT" // seconds from the start of the command until then; empty without a limit
	GPUShareVariable = "FAIRWAY_GPU_SHARE" // of a GPU, such as 0.5, where a job has one of the GPUs only in part

	// CheckpointVariable is the folder in which the command saves its state, relative to the
	// working folder; set where the job has one.
	CheckpointVariable = "FAIRWAY_CHECKPOINT"
)

// programs remembers where programs are: search path and name to path.
type programs = sync.Map

func (p *pilot) variables(a *attempt, r *running, path string) ([]string, error) {
	own := a.Payload.GetEnvironment()
	streamed, err := a.In.Variables()
	if err != nil {
		return nil, err
	}
	base := &p.base.inherited
	if a.Payload.GetStrict() {
		base = &p.base.public
	}
	env := make([]string, len(base.entries), len(base.entries)+len(own)+20)
	copy(env, base.entries)
	env = append(env,
		JobVariable+"="+strconv.FormatUint(uint64(a.GetJob()), 10),
		NameVariable+"="+a.GetName(),
		StepVariable+"="+a.GetStep(),
		process.AttemptVariable+"="+strconv.FormatUint(a.GetAttempt(), 10),
		TryVariable+"="+strconv.Itoa(int(a.GetTry())),
		process.PilotVariable+"="+p.cfg.Pilot,
		SandboxVariable+"="+a.Slot.Folder,
	)
	env = p.share(env, a)
	env = p.deadline(env, r)
	if folder := a.GetCheckpoint().GetLfn(); folder != "" {
		env = append(env, CheckpointVariable+"="+folder)
	}
	env = append(append(env, a.gangVariables()...), a.In.Environment()...)
	set := func(name, value string) {
		if at, ok := base.index[name]; ok {
			env[at] = name + "=" + value
		} else if !strings.HasPrefix(name, "FAIRWAY_") {
			env = append(env, name+"="+value)
		}
	}
	set("PWD", a.Slot.Folder) // and not where the pilot was started
	if a.direct {
		for _, v := range p.base.asByShell(a.Slot.Folder, path) {
			set(v[0], v[1])
		}
	}
	for name, value := range own {
		if located, ok := streamed[name]; ok {
			value = located
		}
		set(name, value)
	}
	return env, nil
}

// giveVariables puts the values of the variables into a payload that the TaskQueue has told, and names
// one that it has not told. The caller holds the mutex.
func (p *pilot) giveVariables(payload *wire.Payload) (lacking string) {
	for _, name := range payload.GetVariables() {
		value, told := p.handed[name]
		if !told {
			return name
		}
		if payload.Environment == nil {
			payload.Environment = map[string]string{}
		}
		payload.Environment[name] = string(value)
	}
	return ""
}

// share is what the step asks for, or else all that the pilot has. A part of a
// processor counts as one.
func (p *pilot) share(env []string, a *attempt) []string {
	cpus, memory := p.cfg.MilliCPUs, p.cfg.Memory
	if asked := a.GetNeeds().GetMilliCpus(); asked > 0 {
		cpus = asked
	}
	if asked := a.GetNeeds().GetMemoryBytes(); asked > 0 {
		memory = asked
	}
	return append(env, CPUsVariable+"="+strconv.FormatInt(max(1, cpus/1000), 10),
		MemoryVariable+"="+strconv.FormatInt(memory, 10))
}

// deadline is the earlier one of the attempt's and the pilot's.
func (p *pilot) deadline(env []string, r *running) []string {
	var end time.Time
	if r.Limit > 0 {
		end = r.Since.Add(r.Limit)
	}
	if life := p.lifeEnds; !life.IsZero() {
		if r.GetCheckpoint() != nil {
			life = p.saveBy()
		}
		if end.IsZero() || life.Before(end) {
			end = life
		}
	}
	if end.IsZero() {
		return append(env, DeadlineVariable+"=", TimeVariable+"=")
	}
	left := max(0, int64(end.Sub(r.Since)/time.Second))
	return append(env, DeadlineVariable+"="+strconv.FormatInt(end.Unix(), 10),
		TimeVariable+"="+strconv.FormatInt(left, 10))
}
