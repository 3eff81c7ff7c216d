// Command submit has a server run a workflow, waits for its end, and fetches a result (docs/go.md).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"fairway/lib/client"
)

const text = `
workflow: greet
parameters: {name: world}
steps:
  greet:
    writes: greeting.txt
    command: echo "hello, $name" > "$out"
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "submit:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := client.Open("") // the server of FAIRWAY_SERVICE
	if err != nil {
		return err
	}
	defer c.Close()
	submitted, err := c.SubmitWorkflow(ctx, &client.SubmitWorkflowRequest{
		Workflow: []byte(text), Parameters: map[string]string{"name": "Go"},
	})
	if err != nil {
		return err
	}
	c = c.About(submitted.Run)
	last, err := c.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Println("jobs done:", last.Steps[0].Done)
	if !last.Succeeded {
		return fmt.Errorf("run %d failed: %v", submitted.Run, last.Problems)
	}
	_, err = c.Copy(ctx, os.Stdout, "greeting.txt", 0)
	return err
}
