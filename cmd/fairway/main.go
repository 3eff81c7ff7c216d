// Command fairway runs data-driven workflows; `fairway help` says how.
package main

import (
	"os"

	"fairway/internal/cli"
)

func main() { os.Exit(cli.Main()) }
