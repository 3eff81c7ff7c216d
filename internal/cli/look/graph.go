package look

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/flow/workflow"
)

// GraphObject is what --json prints of a graph.
type GraphObject struct {
	Inputs []string     `json:"inputs"`
	Steps  []string     `json:"steps"`
	Feeds  []feedObject `json:"feeds"`
}

// feedObject is files that go from an input or a step to a step.
type feedObject struct {
	Input   string `json:"input"` // empty: from a step
	From    string `json:"from"`  // the step; empty: from an input
	To      string `json:"to"`
	Pattern string `json:"pattern"`
}

func graphOf(g *workflow.Graph) GraphObject {
	object := GraphObject{append([]string{}, g.Inputs...), append([]string{}, g.Steps...), []feedObject{}}
	for _, f := range g.Feeds {
		feed := feedObject{From: f.From, To: f.To, Pattern: f.Pattern}
		if f.Input {
			feed.Input, feed.From = f.From, ""
		}
		object.Feeds = append(object.Feeds, feed)
	}
	return object
}

// GraphCommand is `fairway graph`.
func (c *Commands) GraphCommand() *cobra.Command {
	out, format := "-", "mermaid"
	command := &cobra.Command{
		Use:   "graph [FILE]",
		Short: "Draw how the steps of a workflow feed each other",
		Long: `Draw the inputs and steps of a workflow file (default: workflow.yaml), and which
files go from one to another: as text for Mermaid, which forges and notebooks show
as a picture, or as SVG. Nothing is run, and no files are looked for.`,
		Example:           "  fairway graph\n  fairway graph --format svg -o workflow.svg",
		Args:              console.MaybeFile,
		ValidArgsFunction: console.WorkflowFiles,
		RunE: func(command *cobra.Command, arguments []string) error {
			file, _, err := c.FileAndFolder(arguments)
			if err != nil {
				return err
			}
			work, err := console.ReadWorkflow(file, nil, workflow.Scales{})
			if err != nil {
				return err
			}
			graph := work.Graph()
			if c.JSON {
				if out != "-" || command.Flags().Changed("format") {
					return console.Fail(console.ExitUsage, "leave them out",
						"--json prints an object: --output and --format are for pictures")
				}
				return c.Answer(graphOf(&graph), func() {})
			}
			var text bytes.Buffer
			if format == "svg" {
				drawSVG(&text, &graph)
			} else {
				drawMermaid(&text, &graph)
			}
			return c.write(out, &text)
		},
	}
	command.Flags().StringVarP(&out, "output", "o", out, "file to write; -: standard output")
	console.OneOf(command, &format, "format", "mermaid or svg", "mermaid", "svg")
	return command
}

// drawMermaid writes a flowchart. Nodes have numbers, since names may be words of Mermaid.
func drawMermaid(text *bytes.Buffer, g *workflow.Graph) {
	quoted := strings.NewReplacer(`"`, "#quot;", "\n", " ", "#", "#35;")
	text.WriteString("flowchart TD\n")
	nodes := map[string]string{}
	for i, name := range g.Inputs {
		nodes["input "+name] = fmt.Sprint("i", i+1)
		fmt.Fprintf(text, "    i%d[/\"%s\"/]\n", i+1, quoted.Replace(name))
	}
	for i, name := range g.Steps {
		nodes["step "+name] = fmt.Sprint("s", i+1)
		fmt.Fprintf(text, "    s%d[\"%s\"]\n", i+1, quoted.Replace(name))
	}
	for _, f := range g.Feeds {
		fmt.Fprintf(text, "    %s -->|\"%s\"| %s\n", nodes[fromOf(&f)], quoted.Replace(f.Pattern), nodes["step "+f.To])
	}
}

func fromOf(f *workflow.Feed) string {
	if f.Input {
		return "input " + f.From
	}
	return "step " + f.From
}

// Sizes of the drawing, in pixels.
const (
	boxHeight   = 28
	letterWidth = 8
	boxPadding  = 24
	columnGap   = 24
	rowGap      = 44
)

type box struct {
	name, key   string
	row         int
	x, y, width int
}

// rows puts each step one row below the lowest of what feeds it.
func rows(g *workflow.Graph) (all [][]*box) {
	boxes := map[string]*box{}
	place := func(key, name string, row int) {
		b := &box{name: name, key: key, row: row, width: boxPadding + letterWidth*len([]rune(name))}
		boxes[key] = b
		for len(all) <= row {
			all = append(all, nil)
		}
		all[row] = append(all[row], b)
	}
	for _, name := range g.Inputs {
		place("input "+name, name, 0)
	}
	for _, name := range g.Steps {
		row := 0
		for _, f := range g.Feeds {
			if f.To == name {
				row = max(row, boxes[fromOf(&f)].row+1)
			}
		}
		place("step "+name, name, row)
	}
	return slices.DeleteFunc(all, func(row []*box) bool { return len(row) == 0 })
}

func drawSVG(text *bytes.Buffer, g *workflow.Graph) {
	all, width := rows(g), 0
	boxes := map[string]*box{}
	for y, row := range all {
		x := columnGap
		for _, b := range row {
			b.x, b.y = x, columnGap+y*(boxHeight+rowGap)
			x += b.width + columnGap
			boxes[b.key] = b
		}
		width = max(width, x)
	}
	height := columnGap + len(all)*(boxHeight+rowGap)
	fmt.Fprintf(text, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`font-family="sans-serif" font-size="13">`+"\n", width, height)
	for _, f := range g.Feeds {
		from, to := boxes[fromOf(&f)], boxes["step "+f.To]
		x1, y1, x2, y2 := from.x+from.width/2, from.y+boxHeight, to.x+to.width/2, to.y
		fmt.Fprintf(text, `<path d="M%d %d C%d %d %d %d %d %d" fill="none" stroke="#777"><title>%s</title></path>`+"\n",
			x1, y1, x1, y1+rowGap/2, x2, y2-rowGap/2, x2, y2, escaped(f.Pattern))
	}
	for _, row := range all {
		for _, b := range row {
			fill := "#dbe9f6"
			if strings.HasPrefix(b.key, "input ") {
				fill = "#eee"
			}
			fmt.Fprintf(text, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s" stroke="#777"/>`+
				`<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", b.x, b.y, b.width, boxHeight, fill,
				b.x+b.width/2, b.y+boxHeight/2+5, escaped(b.name))
		}
	}
	text.WriteString("</svg>\n")
}

func escaped(text string) string {
	var made bytes.Buffer
	_ = xml.EscapeText(&made, []byte(text)) // a buffer takes all
	return made.String()
}
