package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"fairway/bench/measure"
	"fairway/internal/batch/batchtest"
)

// recordedSlots are those of a recorded run; the others have half and twice as many.
const recordedSlots = 4

// variant is one way to run a plan.
type variant struct {
	name  string
	slots int
}

var variants = []variant{{"recorded", recordedSlots}, {"half", recordedSlots / 2}, {"twice", recordedSlots * 2}}

// bench runs plans in folders of their own.
type bench struct {
	folder, program string
	plans           []plan
}

// row is one foretold run.
type row struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	Slots    int     `json:"slots"`
	Recorded float64 `json:"recorded_s"`
	Foretold float64 `json:"foretold_s"`
	Low      float64 `json:"low_s"` // of the interval
	High     float64 `json:"high_s"`
	Real     float64 `json:"real_s"`
	Error    float64 `json:"error"`
}

const heading = "name       slots  recorded  foretold (interval)      real   error"

func (r row) String() string {
	return fmt.Sprintf("%-10s %5d %7.1f s %7.1f s (%5.1f-%5.1f) %7.1f s %+6.1f %%", r.Name, r.Slots, r.Recorded,
		r.Foretold, r.Low, r.High, r.Real, 100*r.Error)
}

// off says whether what was foretold differs by more; most 0 allows all.
func (r row) off(most float64) bool { return most > 0 && math.Abs(r.Error) > most }

// within is an error where one of what is foretold is off by more.
func within(rows []row, most float64) error {
	for _, r := range rows {
		if r.off(most) {
			return fmt.Errorf("%s with %d slots: foretold %.1f s, took %.1f s: off by more than %g %%", r.Name, r.Slots,
				r.Foretold, r.Real, 100*most)
		}
	}
	return nil
}

// runAll runs what is not there yet: those of this machine one after the other, and those of Slurm
// beside them.
func (b *bench) runAll(ctx context.Context, h *measure.Host) error {
	ofSlurm := func(p plan) bool { return p.slurm }
	if slices.ContainsFunc(b.plans, func(p plan) bool { return p.slurm && !b.complete(p) }) {
		batchtest.Slurm(h)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, slurm := range []bool{false, true} {
		g.Go(func() error {
			for _, p := range b.plans {
				if ofSlurm(p) != slurm {
					continue
				}
				for _, v := range variants {
					if err := b.run(ctx, p, v); err != nil {
						return fmt.Errorf("%s, %s: %w", p.name, v.name, err)
					}
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (b *bench) at(p plan, v variant) string { return filepath.Join(b.folder, p.name, v.name) }

// ranWell is the file that says that a run is complete.
const ranWell = "complete"

func (b *bench) complete(p plan) bool {
	return !slices.ContainsFunc(variants, func(v variant) bool {
		_, err := os.Stat(filepath.Join(b.at(p, v), ranWell))
		return err != nil
	})
}

func (b *bench) run(ctx context.Context, p plan, v variant) error {
	folder := b.at(p, v)
	if _, err := os.Stat(filepath.Join(folder, ranWell)); err == nil {
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	files := map[string]string{"workflow.yaml": p.workflow}
	arguments := append([]string{"run"}, p.arguments...)
	if p.slurm {
		files["sites.yaml"] = p.site(batchtest.SlurmPartition, v.slots/batchtest.SlurmCPUs, batchtest.SlurmCPUs)
		arguments = append(arguments, "--site", "cluster")
	} else {
		arguments = append(arguments, "--pilots", fmt.Sprint(v.slots))
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if _, err := b.fairway(ctx, folder, arguments...); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, ranWell), nil, 0o644)
}

// fairway runs the program in a folder and returns what it prints.
func (b *bench) fairway(ctx context.Context, folder string, arguments ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.program, arguments...)
	cmd.Dir = folder
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("fairway %v: %w\n%s%s", arguments, err, out, said.Bytes())
	}
	return out, nil
}

// rows foretells each run from the recorded one, and compares.
func (b *bench) rows(ctx context.Context) (rows []row, err error) {
	for _, p := range b.plans {
		of, err := b.rowsOf(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

// again records and runs anew, once, the plans of which a row is off: other work of the machine seldom
// disturbs twice, an error of foretelling does. It says what the first rows were.
func (b *bench) again(ctx context.Context, h *measure.Host, rows []row, most float64) ([]row, error) {
	off := *b
	off.plans = slices.DeleteFunc(slices.Clone(b.plans), func(p plan) bool {
		return !slices.ContainsFunc(rows, func(r row) bool { return r.Name == p.name && r.off(most) })
	})
	for _, p := range off.plans {
		for _, r := range rows {
			if r.Name == p.name {
				fmt.Fprintln(os.Stderr, "once more:", r)
			}
		}
		if err := os.RemoveAll(filepath.Join(b.folder, p.name)); err != nil {
			return nil, err
		}
	}
	if err := off.runAll(ctx, h); err != nil {
		return nil, err
	}
	return b.rows(ctx)
}

// rowsOf foretells the other variants of a plan from the recorded one.
func (b *bench) rowsOf(ctx context.Context, p plan) (rows []row, err error) {
	recorded, err := b.took(ctx, b.at(p, variants[0]))
	if err != nil {
		return nil, err
	}
	for _, v := range variants[1:] {
		r := row{Name: p.name, Kind: p.kind, Slots: v.slots, Recorded: recorded}
		if err := b.foretell(ctx, p, &r); err != nil {
			return nil, err
		}
		if r.Real, err = b.took(ctx, b.at(p, v)); err != nil {
			return nil, err
		}
		r.Error = r.Foretold/r.Real - 1
		rows = append(rows, r)
	}
	return rows, nil
}

func (b *bench) foretell(ctx context.Context, p plan, r *row) error {
	var answer struct {
		Cases []struct {
			Seconds float64 `json:"seconds"`
			Low     float64 `json:"low_seconds"`
			High    float64 `json:"high_seconds"`
		} `json:"cases"`
	}
	factor := fmt.Sprintf("%gx", float64(r.Slots)/recordedSlots)
	out, err := b.fairway(ctx, b.at(p, variants[0]), "what-if", "--slots", factor, "--json")
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err == nil && len(answer.Cases) != 1 {
		err = fmt.Errorf("%d cases were foretold", len(answer.Cases))
	}
	if err != nil {
		return err
	}
	r.Foretold, r.Low, r.High = answer.Cases[0].Seconds, answer.Cases[0].Low, answer.Cases[0].High
	return nil
}

// took is how long the run in a folder has taken, by its records.
func (b *bench) took(ctx context.Context, folder string) (float64, error) {
	var answer struct {
		Seconds float64 `json:"seconds"`
	}
	out, err := b.fairway(ctx, folder, "why", "--json")
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	return answer.Seconds, err
}
