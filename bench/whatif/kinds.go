package main

import (
	"fmt"
	"slices"
	"strings"
)

// plan is a workflow that is recorded with some slots, and run for real with half and twice as many.
type plan struct {
	name, kind string
	workflow   string
	arguments  []string // of `fairway run`, besides its slots
	slurm      bool     // pilots come through Slurm; else they are processes of this machine
	late       int      // seconds for which Slurm keeps a pilot at least
}

// pause is a command that waits: between least and most seconds, by the number of the job.
func pause(seed int, least, most float64) string {
	return fmt.Sprintf(`sleep $(awk -v n="$number" 'BEGIN{srand(n*31+%d); rand(); print %g+%g*rand()}')`, seed, least,
		most-least)
}

// plans are four variants of each kind, in turn; if they are to compute, two that do; or those of
// this machine, with the default flags.
func plans(compute, defaults bool) (all []plan) {
	if compute {
		return []plan{computing(0), computing(1)}
	}
	for v := range 4 {
		all = append(all, fan(v), layers(v), tail(v), retried(v), late(v))
	}
	if defaults {
		all = slices.DeleteFunc(all, func(p plan) bool { return p.slurm })
		for i := range all {
			all[i].arguments = nil
		}
	}
	return all
}

func named(kind string, v int) string { return fmt.Sprintf("%s-%d", kind, v+1) }

// fan is one job, many that read its file, and one that reads what these write.
func fan(v int) plan {
	n := []int{20, 26, 32, 40}[v]
	text := fmt.Sprintf(`workflow: fan
steps:
  prepare:
    writes: settings.txt
    command: sleep 1; echo settings > "$out"
  work:
    times: %d
    reads: settings.txt
    writes: parts/{number}.txt
    command: %s; cp settings.txt "$out"
  join:
    merge: parts/{number}.txt
    writes: joined.txt
    command: sleep 1; cat $in > "$out"
`, n, pause(v, 0.6, []float64{2.6, 2.4, 1.6, 1.4}[v]))
	return plan{name: named("fan", v), kind: "fan-out and fan-in", workflow: text}
}

// layers are jobs that read files of the layer before, some of them through caches.
func layers(v int) plan {
	megabytes := []int{2, 4, 8, 4}[v]
	text := fmt.Sprintf(`workflow: layers
steps:
  make:
    times: 12
    writes: made/{number}.bin
    command: %s; head -c %dM /dev/zero > "$out"
  refine:
    each: made/{number}.bin
    writes: refined/{number}.bin
    command: %s; cp "$in" "$out"
  check:
    each: [made/{number}.bin, refined/{number}.bin]
    writes: checked/{number}.txt
    command: %s; cat $in | wc -c > "$out"
  sum:
    merge: checked/{number}.txt
    writes: sum.txt
    command: sleep 0.5; cat $in > "$out"
`, pause(v, 0.5, 1.5), megabytes, pause(v+7, 0.5, 2.5), pause(v+13, 0.5, 1.5))
	return plan{
		name: named("layers", v), kind: "layers with files and caches", workflow: text,
		arguments: []string{"--cache", []string{"host", "none", "host", "pilot"}[v]},
	}
}

// tail has a few long jobs beside many short ones; the long ones go first by their priority, or not.
func tail(v int) plan {
	text := fmt.Sprintf(`workflow: tail
steps:
  short:
    times: %d
    writes: short/{number}.txt
    command: %s; echo "$number" > "$out"
  long:
    times: %d
    priority: %d
    writes: long/{number}.txt
    command: %s; echo "$number" > "$out"
  join:
    merge: [short/{name}.txt, long/{name}.txt]
    writes: joined.txt
    command: sleep 0.5; cat $in > "$out"
`, []int{24, 30, 24, 20}[v], pause(v, 0.4, 1.6), []int{2, 3, 2, 5}[v], []int{10, 10, 0, 5}[v], pause(v+3, 5, 8))
	return plan{name: named("tail", v), kind: "long tail with priorities", workflow: text}
}

// retried has jobs that fail at first.
func retried(v int) plan {
	text := fmt.Sprintf(`workflow: retried
steps:
  work:
    times: %d
    writes: parts/{number}.txt
    retry: {attempts: 4, backoff: %s}
    command: |
      %s
      [ $((number %% %d)) != 0 ] || [ "$FAIRWAY_TRY" -gt %d ]
      echo "$number" > "$out"
  join:
    merge: parts/{number}.txt
    writes: joined.txt
    command: sleep 0.5; cat $in > "$out"
`, []int{24, 28, 20, 24}[v], []string{"1s", "1s", "2s", "1s"}[v], pause(v, 0.6, 2.2), []int{4, 3, 4, 2}[v],
		[]int{1, 1, 2, 1}[v])
	return plan{name: named("retried", v), kind: "attempts that fail", workflow: text}
}

// late has pilots that a real batch system starts after a while.
func late(v int) plan {
	text := fmt.Sprintf(`workflow: late
steps:
  work:
    times: %d
    needs: {cpus: 1}
    writes: parts/{number}.txt
    command: %s; head -c 1M /dev/zero > "$out"
  check:
    each: parts/{number}.txt
    needs: {cpus: 1}
    writes: checked/{number}.txt
    command: %s; wc -c < "$in" > "$out"
  join:
    merge: checked/{number}.txt
    needs: {cpus: 1}
    writes: joined.txt
    command: sleep 0.5; cat $in > "$out"
`, []int{18, 22, 18, 16}[v], pause(v, 0.8, 2.4), pause(v+5, 0.5, 1.5))
	return plan{
		name: named("late", v), kind: "pilots that Slurm starts late", workflow: text, slurm: true,
		late: []int{3, 5, 8, 6}[v],
	}
}

// computing has jobs that compute: with more slots than processors they slow each other down.
func computing(v int) plan {
	text := fmt.Sprintf(`workflow: computing
steps:
  work:
    times: %d
    writes: parts/{number}.txt
    command: awk -v n="$number" 'BEGIN{srand(n*31+%d); rand(); for (i = %d*(1+rand()); i > 0; i--) x += i; print x}' >"$out"
  join:
    merge: parts/{number}.txt
    writes: joined.txt
    command: cat $in > "$out"
`, []int{16, 24}[v], v, []int{12_000_000, 8_000_000}[v])
	return plan{name: named("computing", v), kind: "jobs that compute", workflow: text}
}

// site is the site file of a plan, for so many slots.
func (p *plan) site(partition string, pilots, cpus int) string {
	return strings.NewReplacer("$PARTITION", partition, "$PILOTS", fmt.Sprint(pilots), "$CPUS", fmt.Sprint(cpus),
		"$LATE", fmt.Sprint(p.late)).Replace(`sites:
  cluster:
    system: slurm
    partition: $PARTITION
    max_pilots: $PILOTS
    cpus: $CPUS
    memory: 200MB
    time: 10m
    poll: 1s
    options: [--begin=now+$LATE]
`)
}
