package rocrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Profiles and terms of the crate.
const (
	crateSpec    = "https://w3id.org/ro/crate/1.1"
	workflowSpec = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
	process      = "https://w3id.org/ro/wfrun/process/0.5"
	workflowRun  = "https://w3id.org/ro/wfrun/workflow/0.5"
	provenance   = "https://w3id.org/ro/wfrun/provenance/0.5"
	runTerms     = "https://w3id.org/ro/terms/workflow-run"
	bioWorkflow  = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
	bioParameter = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"
	completed    = "http://schema.org/CompletedActionStatus"
	failed       = "http://schema.org/FailedActionStatus"
	second       = "http://qudt.org/vocab/unit/SEC"
	// buildInstructions is a term that RO-Crate 1.1 lacks.
	buildInstructions = "https://codemeta.github.io/terms/buildInstructions"
	byteUnit          = "http://qudt.org/vocab/unit/BYTE"
)

// Identifiers within the crate of what there is one of.
const (
	runID     = "#run"
	engineID  = "#fairway"
	agentID   = "#agent"
	licenseID = "#licence"
)

// entity is an object of the graph; encoding/json writes its keys in order.
type entity map[string]any

// compact writes one value as itself, and leaves out what has none, as RO-Crate recommends.
func (e entity) compact() {
	for name, value := range e {
		list, ok := value.([]reference)
		switch {
		case ok && len(list) == 0:
			delete(e, name)
		case ok && len(list) == 1:
			e[name] = list[0]
		}
	}
}

type reference struct {
	ID string `json:"@id"`
}

type crate struct {
	run      *Run
	graph    []entity
	versions map[string]map[uint32]bool // of each file
	files    map[key]entity
	order    []key // of files, of first use
	found    map[key]File
	read     map[key]bool
	parts    []reference // of the root
	mentions []reference
	steps    map[string]bool // that have jobs
	examples map[string]entity
	base     string // authority of files

	images    map[string]bool  // that are described
	described map[string]bool  // other things of which several may tell
	of        map[string][]key // files of parameters, by the parameter
	madeFrom  map[string][]key // what the job read that made a folder, by the folder
}

// Write writes the metadata of a crate whose folder holds the workflow file and nothing else:
// other files are named by URIs of the scheme arcp, with the place where they are stored. Only
// steps with jobs are told of. The same run gives the same text, but for the time in Made.
func Write(out io.Writer, run *Run) error {
	c := &crate{
		run: run, versions: map[string]map[uint32]bool{}, files: map[key]entity{}, found: map[key]File{},
		read: map[key]bool{}, steps: map[string]bool{}, examples: map[string]entity{}, base: run.authority(),
		images: map[string]bool{}, described: map[string]bool{}, of: map[string][]key{}, madeFrom: map[string][]key{},
	}
	c.survey()
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	graph := c.describe()
	for _, e := range graph {
		e.compact()
	}
	text := map[string]any{
		"@context": []any{
			crateSpec + "/context", runTerms + "/context", map[string]string{"buildInstructions": buildInstructions},
		},
		"@graph": graph,
	}
	if err := encoder.Encode(text); err != nil {
		return fmt.Errorf("RO-Crate: %w", err)
	}
	return nil
}

func (c *crate) survey() {
	for i := range c.run.Jobs {
		job := &c.run.Jobs[i]
		c.steps[job.Step] = true
		for _, f := range job.Reads {
			c.read[f.key()] = true
		}
		for _, f := range job.Writes {
			if f.folder() {
				c.madeFrom[f.LFN] = keysOf(job.Reads)
			}
		}
		for _, f := range slices.Concat(job.Reads, job.Writes) {
			if c.versions[f.LFN] == nil {
				c.versions[f.LFN] = map[uint32]bool{}
			}
			c.versions[f.LFN][f.Version] = true
			there, ok := c.found[f.key()]
			if !ok {
				c.order = append(c.order, f.key())
			}
			// The writer knows the sums, and a reader the place.
			f.Adler32, f.BLAKE3 = cmp.Or(f.Adler32, there.Adler32), cmp.Or(f.BLAKE3, there.BLAKE3)
			f.Place, f.Size = cmp.Or(f.Place, there.Place), max(f.Size, there.Size)
			f.Made, f.Published = f.Made || there.Made, f.Published || there.Published
			c.found[f.key()] = f
		}
	}
}

func (c *crate) describe() []entity {
	for _, k := range c.order {
		c.describeFile(k)
	}
	workflow, action := c.workflow(), c.workflowAction()
	jobs, controls := c.jobs()
	if len(controls) > 0 {
		jobs = append([]entity{c.orchestration(controls)}, jobs...)
	}
	root := entity{
		"@id": "./", "@type": "Dataset", "name": "Run of the workflow " + c.run.Workflow,
		"description":   cmp.Or(c.run.About, "A run of the workflow "+c.run.Workflow) + ", recorded by Fairway",
		"datePublished": instant(c.run.Made), "license": reference{c.licenseID()},
		"conformsTo": refs(process, workflowRun, provenance, workflowSpec),
		"mainEntity": reference{WorkflowFile}, "mentions": c.mentions,
		"hasPart": append([]reference{{WorkflowFile}}, c.parts...),
	}
	all := []entity{{
		"@id": MetadataFile, "@type": "CreativeWork", "about": reference{"./"},
		"conformsTo": refs(crateSpec, workflowSpec),
	}, root, workflow}
	for _, p := range [][3]string{
		{process, "Process Run Crate", "0.5"}, {workflowRun, "Workflow Run Crate", "0.5"},
		{provenance, "Provenance Run Crate", "0.5"}, {workflowSpec, "Workflow RO-Crate", "1.0"},
	} {
		all = append(all, entity{"@id": p[0], "@type": "CreativeWork", "name": p[1], "version": p[2]})
	}
	all = append(all, entity{
		"@id": "#language", "@type": "ComputerLanguage", "name": "Fairway workflow", "alternateName": "fairway",
		"version": c.run.Version,
	}, entity{"@id": engineID, "@type": "SoftwareApplication", "name": "Fairway", "softwareVersion": c.run.Version})
	all = append(all, c.license())
	if c.run.Agent != "" {
		all = append(all, c.agent())
		root["author"] = action["agent"]
	}
	all = append(append(all, action), jobs...)
	all = append(all, c.graph...)
	for _, k := range c.order {
		all = append(all, c.files[k])
	}
	return all
}

func (c *crate) licenseID() string {
	if isURL(c.run.License) {
		return c.run.License
	}
	return licenseID
}

func (c *crate) license() entity {
	return entity{
		"@id": c.licenseID(), "@type": "CreativeWork", "name": cmp.Or(c.run.License, "No licence is stated"),
		"description": "Under which licence this crate is",
	}
}

func (c *crate) agent() entity {
	if isURL(c.run.Agent) {
		return entity{"@id": c.run.Agent, "@type": "Person", "name": c.run.Agent}
	}
	return entity{"@id": agentID, "@type": "Person", "name": c.run.Agent}
}

// attribute says who had an action done, where that is known.
func (c *crate) attribute(action entity) {
	switch {
	case isURL(c.run.Agent):
		action["agent"] = reference{c.run.Agent}
	case c.run.Agent != "":
		action["agent"] = reference{agentID}
	}
}

func (c *crate) workflow() entity {
	inputs, outputs := c.ends()
	w := entity{
		"@id": WorkflowFile, "@type": []string{"File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"},
		"name": c.run.Workflow, "programmingLanguage": reference{"#language"},
		"conformsTo": refs(bioWorkflow), "contentSize": strconv.FormatInt(c.run.FileSize, 10),
		"encodingFormat": "application/yaml", "version": "sha256:" + c.run.FileSum,
		"input": append(c.parameters("input", inputs), c.settings()...), "output": c.parameters("output", outputs),
	}
	if c.run.About != "" {
		w["description"] = c.run.About
	}
	var tools, steps []reference
	sources, reads := map[key]string{}, map[string][]reference{}
	c.comeFrom(w["input"].([]reference), sources)
	for i, name := range c.run.Steps {
		if !c.steps[name] {
			continue
		}
		tool, step := fragment("tool", name), fragment("step", name)
		tools, steps = append(tools, reference{tool}), append(steps, reference{step})
		read, written := c.filesOf(name)
		reads[name] = c.parameters("reads/"+name, read)
		writes := c.parameters("writes/"+name, written)
		c.comeFrom(writes, sources)
		c.graph = append(c.graph, entity{
			"@id": tool, "@type": "SoftwareApplication", "name": name, "softwareVersion": c.run.Version,
			"description": "The command of the step " + name + ", as the workflow file has it",
			"input":       reads[name], "output": writes, "softwareRequirements": c.programs(name),
		}, entity{
			"@id": step, "@type": "HowToStep", "name": name, "position": strconv.Itoa(i + 1), "workExample": reference{tool},
			"buildInstructions": c.refsTo(c.requirements(name)),
		})
	}
	w["hasPart"], w["step"] = tools, steps
	c.connect(w, reads, sources)
	return w
}

func (c *crate) connect(workflow entity, reads map[string][]reference, sources map[key]string) {
	for _, e := range c.graph {
		if e["@type"] == "HowToStep" {
			e["connection"] = c.connections(reads[e["name"].(string)], sources)
		}
	}
	workflow["connection"] = c.connections(workflow["output"].([]reference), sources)
}

// ends are the files that no job made, and those that are results: the published ones, or else
// those that no job read.
func (c *crate) ends() (inputs, outputs []key) {
	var unread []key
	for _, k := range c.order {
		f := c.found[k]
		switch {
		case !f.Made:
			inputs = append(inputs, k)
		case f.Published:
			outputs = append(outputs, k)
		case !c.read[k]:
			unread = append(unread, k)
		}
	}
	if len(outputs) == 0 {
		outputs = unread
	}
	return inputs, outputs
}

func (c *crate) filesOf(step string) (reads, writes []key) {
	var read, wrote []File
	for i := range c.run.Jobs {
		if job := &c.run.Jobs[i]; job.Step == step {
			read, wrote = append(read, job.Reads...), append(wrote, job.Writes...)
		}
	}
	return keysOf(read), keysOf(wrote)
}

func (c *crate) parameters(name string, files []key) []reference {
	all := []reference{}
	for _, kind := range []string{"File", "Dataset"} {
		of := slices.DeleteFunc(slices.Clone(files), func(k key) bool {
			f := c.found[k]
			return f.folder() != (kind == "Dataset")
		})
		if len(of) == 0 {
			continue
		}
		id := fragment("parameter", name, strings.ToLower(kind))
		var examples []reference
		c.of[id] = of
		for _, k := range of {
			examples = append(examples, reference{c.id(k)})
			file := c.files[k]
			list, _ := file["exampleOfWork"].([]reference)
			file["exampleOfWork"] = append(list, reference{id})
		}
		c.graph = append(c.graph, entity{
			"@id": id, "@type": "FormalParameter", "additionalType": kind, "name": name, "conformsTo": refs(bioParameter),
			"multipleValues": strconv.FormatBool(len(of) > 1), "workExample": examples,
		})
		all = append(all, reference{id})
	}
	return all
}

func (c *crate) settings() []reference {
	var all []reference
	for _, name := range slices.Sorted(maps.Keys(c.run.Parameters)) {
		id, value := fragment("setting", name), fragment("value", name)
		c.graph = append(c.graph, entity{
			"@id": id, "@type": "FormalParameter", "additionalType": "Text", "name": name, "conformsTo": refs(bioParameter),
			"workExample": reference{value},
		}, entity{
			"@id": value, "@type": "PropertyValue", "name": name, "value": c.run.Parameters[name],
			"exampleOfWork": reference{id},
		})
		all = append(all, reference{id})
	}
	return all
}

func (c *crate) workflowAction() entity {
	inputs, outputs := c.ends()
	objects := c.refsTo(inputs)
	for _, name := range slices.Sorted(maps.Keys(c.run.Parameters)) {
		objects = append(objects, reference{fragment("value", name)})
	}
	a := entity{
		"@id": runID, "@type": "CreateAction", "name": "Run of " + c.run.Workflow, "instrument": reference{WorkflowFile},
		"description": fmt.Sprintf("Run %d of the workflow %s, with all its jobs", c.run.Number, c.run.Workflow),
		"object":      objects, "result": c.refsTo(outputs), "containerImage": c.allImages(),
	}
	c.attribute(a)
	start, end := c.run.span()
	if !start.IsZero() {
		a["startTime"] = instant(start)
	}
	if c.run.Ended {
		if !end.IsZero() {
			a["endTime"] = instant(end)
		}
		a["actionStatus"] = status(!c.run.Succeeded)
		if !c.run.Succeeded {
			a["error"] = "Not all jobs are done."
		}
	}
	c.mentions = append(c.mentions, reference{runID})
	return a
}

func (c *crate) jobs() (all []entity, controls []reference) {
	for i := range c.run.Jobs {
		job := &c.run.Jobs[i]
		id, control := fragment("job", job.Name), fragment("control", job.Name)
		a := entity{
			"@id": id, "@type": "CreateAction", "name": job.Name, "instrument": reference{fragment("tool", job.Step)},
			"description": job.describe(), "object": c.refsTo(keysOf(job.Reads)), "result": c.refsTo(keysOf(job.Writes)),
			"actionStatus": status(job.Failed), "containerImage": c.image(job),
		}
		c.attribute(a)
		if job.Failed {
			a["error"] = cmp.Or(job.Error, "It failed.")
			a["result"] = []reference{}
		}
		if !job.Start.IsZero() {
			a["startTime"] = instant(job.Start)
		}
		if !job.End.IsZero() {
			a["endTime"] = instant(job.End)
		}
		if used := c.usage(job); len(used) > 0 {
			a["resourceUsage"] = used
		}
		all = append(all, a, entity{
			"@id": control, "@type": "ControlAction", "name": "Control of " + job.Name, "object": reference{id},
			"instrument": reference{fragment("step", job.Step)}, "actionStatus": status(job.Failed),
		})
		c.mentions, controls = append(c.mentions, reference{id}), append(controls, reference{control})
	}
	return all, controls
}

func (j *Job) describe() string {
	text := "Job " + j.Name
	if j.Host != "" {
		text += " on " + j.Host
	}
	if j.Earlier {
		text += ", executed by an earlier run whose result was taken"
	}
	if j.Command != "" {
		text += ": " + j.Command
	}
	return text
}

func (c *crate) usage(job *Job) (used []reference) {
	add := func(name, value, unit string) {
		id := fragment("usage", name, job.Name)
		c.graph = append(c.graph, entity{
			"@id": id, "@type": "PropertyValue", "name": name, "propertyID": fragment("quantity", name), "value": value,
			"unitCode": unit,
		})
		used = append(used, reference{id})
	}
	if job.CPU > 0 {
		add("processorTime", strconv.FormatFloat(job.CPU.Seconds(), 'f', -1, 64), second)
	}
	if job.Memory > 0 {
		add("maximumMemory", strconv.FormatInt(job.Memory, 10), byteUnit)
	}
	return used
}

func (c *crate) orchestration(controls []reference) entity {
	id := "#orchestration"
	a := entity{
		"@id": id, "@type": "OrganizeAction", "name": "Execution by Fairway " + c.run.Version,
		"instrument": reference{engineID}, "object": controls, "result": reference{runID},
	}
	c.attribute(a)
	if start, end := c.run.span(); !start.IsZero() {
		a["startTime"] = instant(start)
		if c.run.Ended {
			a["endTime"] = instant(end)
		}
	}
	c.mentions = append(c.mentions, reference{id})
	return a
}

// id names a version of a file: by its LFN alone where there is only one.
func (c *crate) id(k key) string {
	u := url.URL{Scheme: "arcp", Host: c.base, Path: "/" + k.lfn}
	if len(c.versions[k.lfn]) > 1 {
		u.RawQuery = fmt.Sprintf("version=%d", k.version)
	}
	return u.String()
}

func (c *crate) describeFile(k key) {
	f := c.found[k]
	e := entity{
		"@id": c.id(k), "@type": "File", "name": f.LFN, "version": strconv.FormatUint(uint64(f.Version), 10),
	}
	if f.folder() {
		e["@type"] = "Dataset"
	} else {
		e["contentSize"] = strconv.FormatInt(f.Size, 10)
	}
	if isURL(f.Place) {
		e["contentUrl"] = f.Place
	} else if f.Place != "" {
		e["description"] = "Stored at " + f.Place
	}
	var sums []reference
	for _, sum := range [][2]string{{"adler32", f.Adler32}, {"blake3", f.BLAKE3}} {
		if sum[1] == "" {
			continue
		}
		id := fragment("checksum", sum[0], strconv.FormatUint(uint64(f.Version), 10), f.LFN)
		c.graph = append(c.graph, entity{
			"@id": id, "@type": "PropertyValue", "name": "checksum", "propertyID": sum[0], "value": sum[1],
		})
		sums = append(sums, reference{id})
	}
	if len(sums) > 0 {
		e["additionalProperty"] = sums
	}
	c.files[k] = e
	c.parts = append(c.parts, reference{c.id(k)})
}

func (c *crate) refsTo(files []key) []reference {
	all := []reference{}
	for _, k := range files {
		all = append(all, reference{c.id(k)})
	}
	return all
}

func keysOf(files []File) (keys []key) {
	seen := map[key]bool{}
	for i := range files {
		if k := files[i].key(); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

func refs(ids ...string) []reference {
	all := []reference{}
	for _, id := range ids {
		all = append(all, reference{id})
	}
	return all
}

func status(bad bool) string {
	if bad {
		return failed
	}
	return completed
}

// instant is a time rounded down to the millisecond: the profiles recommend no more.
func instant(t time.Time) string {
	return t.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000-07:00")
}
