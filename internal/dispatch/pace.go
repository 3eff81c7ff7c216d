package dispatch

import "time"

// pace is what the attempts that succeeded tell of those to come. It is not
// durable: after Load nothing is expected until some have ended.
type pace struct {
	transfer average // seconds for each byte that is read from storage
	runs     map[*StepTotals]*average
}

// average is a mean in which what came n terms later counts (1-1/averaged)^n
// times as much.
type average struct{ sum, weight float64 }

// averaged is about how many of the last terms an average is of.
const averaged = 32

func (a *average) add(sum, weight float64) {
	a.sum += sum - a.sum/averaged
	a.weight += weight - a.weight/averaged
}

// mean is 0 while there is nothing to know it from.
func (a *average) mean() float64 {
	if a == nil || a.weight == 0 {
		return 0
	}
	return a.sum / a.weight
}

// learn takes what an attempt that succeeded took.
func (e *pace) learn(j *job, u *Usage) {
	if in := u.Start.Sub(u.StageInStart); in >= 0 && u.BytesStaged > 0 {
		e.transfer.add(in.Seconds(), float64(u.BytesStaged))
	}
	if took := u.StageOutEnd.Sub(u.StageInStart); took > 0 {
		if e.runs[j.step] == nil {
			e.runs[j.step] = &average{}
		}
		e.runs[j.step].add(took.Seconds(), 1)
	}
}

// transferOf is how long reading so many bytes from storage is expected to
// take.
func (e *pace) transferOf(bytes int64) time.Duration {
	return seconds(float64(bytes) * e.transfer.mean())
}

// runOf is how long an attempt of the job's step is expected to occupy its
// pilot; 0 if nothing tells.
func (e *pace) runOf(j *job) time.Duration { return seconds(e.runs[j.step].mean()) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
