package fifo

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"fairway/lib/modelcheck"
	"fairway/lib/seed"
)

// variants are what the model of the queue must be refused with, by their numbers in fifo.pml.
var variants = []string{"", "overtake", "shared write", "lost cancel", "release first", "one grant", "late"}

// checkModel has SPIN walk the model, and returns what is wrong with it, or "".
func checkModel(t *testing.T, trace string, defines ...string) string {
	t.Helper()
	said, refused := modelcheck.Check(t, "model/fifo.pml", trace, false, defines...)
	if !refused {
		return ""
	}
	return said
}

// In no order of steps does the queue let two tasks that conflict have a location, a task with pairs
// get ahead, or one wait for ever; and the model that says so refuses what is broken.
func TestModelOfTheQueue(t *testing.T) {
	for number, name := range variants {
		tasks := 3
		if name == "" && os.Getenv("FAIRWAY_SOAK") == "" {
			tasks = 2
		}
		said := checkModel(t, "", fmt.Sprint("-DBROKEN=", number), fmt.Sprint("-DTASKS=", tasks))
		switch {
		case name == "" && said != "":
			t.Errorf("the model is wrong:\n%s", said)
		case name != "" && said == "":
			t.Errorf("%s is not refused", name)
		}
	}
}

// What a real queue did in a random run is what the model does, step by step, and a run that grants
// otherwise is none of the model.
func TestModelFollowsTheQueue(t *testing.T) {
	trace := recordedRun(rand.New(rand.NewPCG(seed.Of(t), 0)))
	if said := checkModel(t, trace, "-DTRACE"); said != "" {
		t.Errorf("the model does not do this:\n%s\n%s", trace, said)
	}
	at := strings.LastIndex(trace, "\tskip")
	wrong := trace[:at] + "\twant[STEPS - 1] = 63 - want[STEPS - 1];\n" + trace[at:]
	if checkModel(t, wrong, "-DTRACE") == "" {
		t.Errorf("the model does this too:\n%s", wrong)
	}
}

// recordedRun is what a queue did, as calls of the model's transitions.
func recordedRun(rng *rand.Rand) string {
	const handles = 6 // of 3 tasks
	var q Queue[int]
	var all [handles]Request[int]
	var b bytes.Buffer
	const steps = 30
	fmt.Fprintf(&b, "#define STEPS %d\ninline load() {\n", steps)
	for n := range steps {
		h := rng.IntN(handles)
		twin := h ^ 1
		switch r := &all[h]; {
		case !r.Queued() && all[twin].Granted() && rng.IntN(3) > 0:
			q.Cycle(&all[twin], r)
			fmt.Fprintf(&b, "\top[%d] = CYCLE; one[%d] = %d; other[%d] = %d;", n, n, twin, n, h)
		case !r.Queued():
			m := Mode(rng.IntN(2))
			q.Insert(r, m)
			fmt.Fprintf(&b, "\top[%d] = INSERT + %d; one[%d] = %d;", n, m, n, h)
		case r.Granted() && rng.IntN(2) == 0:
			q.Release(r)
			fmt.Fprintf(&b, "\top[%d] = RELEASE; one[%d] = %d;", n, n, h)
		default:
			q.Cancel(r)
			fmt.Fprintf(&b, "\top[%d] = CANCEL; one[%d] = %d;", n, n, h)
		}
		granted := 0
		for i := range all {
			if all[i].Granted() {
				granted |= 1 << i
			}
		}
		fmt.Fprintf(&b, " want[%d] = %d;\n", n, granted)
	}
	b.WriteString("\tskip\n}\n")
	return b.String()
}
