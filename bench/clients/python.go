package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// functions are the ways to have a Python function called.
func (b *bench) functions(calls int) (all []*subject) {
	for _, way := range []struct{ name, module, pip string }{
		{"fairway", "cloudpickle", "cloudpickle"},
		{"fairway chunks", "cloudpickle", "cloudpickle"}, // map(chunksize=50)
		{"ProcessPoolExecutor", "concurrent.futures", ""},
		{"joblib", "joblib", "cloudpickle joblib"},
		{"loky", "joblib", "joblib"},
		{"GridSearchCV", "sklearn", "cloudpickle scikit-learn"},
		{"GridSearchCV loky", "sklearn", "scikit-learn"},
		{"dask", "distributed", "dask[distributed]"},
		{"parsl", "parsl", "parsl"},
		{"ray", "ray", "ray"},
	} {
		tasks := calls
		if way.module == "sklearn" { // a fit takes some 50 ms
			tasks = max(5, calls/10)
		}
		all = append(all, &subject{
			name: "python " + way.name, tasks: tasks,
			run: func(ctx context.Context, calls int) (float64, error) {
				if err := b.install(ctx, way.module, strings.Fields(way.pip)...); err != nil {
					return 0, err
				}
				out, err := b.run(ctx, b.folder, b.python, filepath.Join(b.root, "bench/clients/functions.py"), way.name,
					strconv.Itoa(slots), strconv.Itoa(calls))
				if err != nil {
					return 0, err
				}
				lines := strings.Fields(out)
				if len(lines) == 0 {
					return 0, fmt.Errorf("functions.py %s said nothing", way.name)
				}
				return strconv.ParseFloat(lines[len(lines)-1], 64)
			},
		})
	}
	return all
}
