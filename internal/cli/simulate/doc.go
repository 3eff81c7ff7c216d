// Package simulate has the commands of the simulator.
package simulate

import "fairway/internal/cli/console"

type commands struct{ *console.Console }
