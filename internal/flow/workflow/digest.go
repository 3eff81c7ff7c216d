package workflow

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
)

// digestFormat changes whenever the same command would mean something else.
const digestFormat = "fairway job 2"

// Digest identifies all that decides the outputs of a job besides the
// contents of what it reads: the command, its variables (of those from outside
// the names) and the names of its files. What it needs, where it runs and how
// often it is retried are left out.
func Digest(j NewJob) string {
	c := &j.Command
	d := digested{}.text(digestFormat).text(c.Shell).text(c.Script).text(c.Interpreter).text(c.Log).list(c.Argv)
	for _, name := range sortedKeys(c.Environment) {
		d = d.text(name).text(c.Environment[name])
	}
	d = d.number(len(c.Environment)).list(j.Job.Reads)
	for _, w := range j.Job.Writes {
		d = d.text(w.LFN)
	}
	d = d.number(len(j.Job.Writes))
	if c.Container != nil || c.EnvironmentFolder != "" {
		d = d.text(c.EnvironmentFolder)
		if c.Container != nil {
			d = d.text(c.Container.Image)
		}
	}
	if c.Replay != nil {
		d = d.replay(*c.Replay)
	}
	if c.Worker != "" {
		d = d.text(c.Worker)
	}
	if j.Job.Tasks > 1 { // what they make together may depend on how many they are
		d = d.text("tasks").number(j.Job.Tasks)
		if j.Job.Once {
			d = d.text("once")
		}
	}
	if len(c.Variables) > 0 {
		d = d.list(c.Variables)
	}
	sum := blake3.Sum256(d)
	return hex.EncodeToString(sum[:16])
}

// digested is text in which no two different jobs look the same.
type digested []byte

func (d digested) number(n int) digested { return binary.AppendVarint(d, int64(n)) }

func (d digested) text(s string) digested { return append(d.number(len(s)), s...) }

func (d digested) list(texts []string) digested {
	d = d.number(len(texts))
	for _, s := range texts {
		d = d.text(s)
	}
	return d
}

func (d digested) replay(r Replay) digested {
	d = d.text(r.Program).number(int(r.Compute))
	writes := slices.Clone(r.Writes)
	slices.SortFunc(writes, func(a, b SizedFile) int { return strings.Compare(a.LFN, b.LFN) })
	for _, w := range writes {
		d = d.text(w.LFN).number(int(w.Size))
	}
	return d
}
