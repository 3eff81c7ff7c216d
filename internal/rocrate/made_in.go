package rocrate

import (
	"path"
	"slices"
	"strings"
)

var imageTypes = map[string]string{".sif": runTerms + "#SIFImage", ".tar": runTerms + "#DockerImage"}

func (c *crate) image(job *Job) []reference {
	if job.Image == "" {
		return nil
	}
	id := fragment("image", job.Image)
	if c.images[id] {
		return []reference{{id}}
	}
	c.images[id] = true
	e := entity{
		"@id": id, "@type": "ContainerImage", "name": job.Image,
		"additionalType": "An image of the kind " + path.Ext(strings.TrimSuffix(job.Image, "/")),
	}
	if kind := imageTypes[path.Ext(job.Image)]; kind != "" {
		e["additionalType"] = reference{kind}
	} else if strings.HasSuffix(job.Image, "/") {
		e["additionalType"] = "A folder with all files of a system"
	}
	for _, f := range job.Reads {
		if f.LFN == job.Image {
			e["sameAs"] = reference{c.id(f.key())}
		}
	}
	c.graph = append(c.graph, e)
	return []reference{{id}}
}

func (c *crate) allImages() (all []reference) {
	for i := range c.run.Jobs {
		for _, image := range c.image(&c.run.Jobs[i]) {
			if !slices.Contains(all, image) {
				all = append(all, image)
			}
		}
	}
	return all
}

func (c *crate) requirements(step string) (files []key) {
	for i := range c.run.Jobs {
		job := &c.run.Jobs[i]
		if job.Step != step || job.Environment == "" {
			continue
		}
		for _, k := range c.madeFrom[job.Environment] {
			if !slices.Contains(files, k) {
				files = append(files, k)
			}
		}
	}
	return files
}

func (c *crate) programs(step string) (all []reference) {
	for _, name := range c.run.Tools[step] {
		id := fragment("program", name)
		if !c.described[id] {
			c.described[id] = true
			c.graph = append(c.graph, entity{
				"@id": id, "@type": "SoftwareApplication", "name": name,
				"description": "A program that nodes must have for some steps",
			})
		}
		all = append(all, reference{id})
	}
	return all
}

// connections describes from which parameters the files of others come: those of the workflow, and
// those that steps write. sources has by file where it comes from.
func (c *crate) connections(targets []reference, sources map[key]string) (all []reference) {
	for _, target := range targets {
		var from []string
		for _, k := range c.of[target.ID] {
			if source := sources[k]; source != "" && !slices.Contains(from, source) {
				from = append(from, source)
			}
		}
		for _, source := range from {
			id := fragment("connection", strings.TrimPrefix(source, "#parameter/"), strings.TrimPrefix(target.ID, "#parameter/"))
			c.graph = append(c.graph, entity{
				"@id": id, "@type": "ParameterConnection", "sourceParameter": reference{source}, "targetParameter": target,
			})
			all = append(all, reference{id})
		}
	}
	return all
}

// comeFrom notes that files come from parameters.
func (c *crate) comeFrom(parameters []reference, sources map[key]string) {
	for _, p := range parameters {
		for _, k := range c.of[p.ID] {
			sources[k] = p.ID
		}
	}
}
