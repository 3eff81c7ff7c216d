package histories

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// edits change the project and the folder, and say what they did; nothing where
// they cannot.
var edits = []func(h *history) string{
	(*history).editCommand, (*history).editCommand, (*history).editKind, (*history).addStep, (*history).removeStep,
	(*history).renameStep, (*history).moveStep, (*history).editRules,
	(*history).editInput, (*history).editInput, (*history).editSameSize, (*history).editInPlace,
	(*history).addInput, (*history).removeInput, (*history).renameInput, (*history).swapInputs,
	(*history).setWord, (*history).setNumber,
}

func (h *history) edit() {
	for {
		if did := edits[h.random.IntN(len(edits))](h); did != "" {
			h.say(did)
			h.writeWorkflow()
			return
		}
	}
}

func (h *history) writeWorkflow() {
	write(h.t, filepath.Join(h.folder, "workflow.yaml"), h.project.workflow(h.log))
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func (h *history) editCommand() string {
	s := pick(h.random, h.project.steps)
	s.salt = (s.salt + 1 + h.random.IntN(98)) % 100
	return "edit the command of " + s.name
}

// editKind lets a step do something else that gives as many placeholders.
func (h *history) editKind() string {
	s := pick(h.random, h.project.steps)
	arity := s.arity()
	if s.kind == updating || h.project.isSource(s) && s.kind == reading {
		return ""
	}
	before := s.kind
	s.kind = kind(h.random.IntN(int(updating)))
	if s.kind == before || s.arity() != arity && h.project.isSource(s) || s.arity() > 4 {
		s.kind = before
		return ""
	}
	return fmt.Sprintf("let %s be of kind %d", s.name, s.kind)
}

func (h *history) addStep() string {
	if len(h.project.steps) > 7 {
		return ""
	}
	h.project.addStep(h.random)
	return "add a step"
}

func (h *history) removeStep() string {
	i := h.random.IntN(len(h.project.steps))
	s := h.project.steps[i]
	if len(h.project.steps) < 2 || h.project.isSource(s) {
		return ""
	}
	h.project.steps = slices.Delete(h.project.steps, i, i+1)
	return "remove " + s.name
}

func (h *history) renameStep() string {
	s := pick(h.random, h.project.steps)
	h.project.made++
	was := s.name
	s.name = fmt.Sprint("step", h.project.made)
	return fmt.Sprintf("rename %s to %s", was, s.name)
}

// moveStep has a step write to another folder, which may be a former one.
func (h *history) moveStep() string {
	s := pick(h.random, h.project.steps)
	folder := fmt.Sprint("made", 1+h.random.IntN(h.project.made))
	if s.updates() || slices.ContainsFunc(h.project.steps, func(other *step) bool { return other.folder == folder }) {
		return ""
	}
	s.folder = folder
	return fmt.Sprintf("let %s write to %s", s.name, s.folder)
}

// editRules changes what is no part of the command.
func (h *history) editRules() string {
	s := pick(h.random, h.project.steps)
	switch h.random.IntN(3) {
	case 0:
		s.cached = !s.cached && !s.shown && !s.updates()
		return fmt.Sprintf("%s: in caches %v", s.name, s.cached)
	case 1:
		s.shown = !s.shown && !s.cached
		return fmt.Sprintf("%s: published %v", s.name, s.shown)
	}
	s.worded = !s.worded
	return fmt.Sprintf("%s: with a parameter %v", s.name, s.worded)
}

func (h *history) path(name string) string { return filepath.Join(h.folder, name) }

func (h *history) anyInput() string {
	folders := []string{"in", "in", "pool", "drop"}
	names := append(h.project.namesIn(pick(h.random, folders)), tableFile)
	return pick(h.random, names)
}

func (h *history) editInput() string {
	name := h.anyInput()
	h.project.files[name] = text(h.random)
	write(h.t, h.path(name), h.project.files[name])
	return "edit " + name
}

// editSameSize replaces a file by one of the same size and time.
func (h *history) editSameSize() string {
	name := h.anyInput()
	changed := h.otherOfSize(name)
	info, err := os.Stat(h.path(name))
	if err != nil {
		h.t.Fatal(err)
	}
	writeAt(h.t, h.path(name), changed, info.ModTime())
	return "replace " + name + " by one of the same size and time"
}

// editInPlace writes other bytes of the same number into a file.
func (h *history) editInPlace() string {
	name := h.anyInput()
	changed := h.otherOfSize(name)
	info, err := os.Stat(h.path(name))
	if err == nil {
		err = os.WriteFile(h.path(name), []byte(changed), 0o644)
	}
	at := longAgo.Add(time.Duration(h.random.IntN(1000)) * time.Second)
	if err == nil && !at.Equal(info.ModTime()) {
		err = os.Chtimes(h.path(name), at, at)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return "write into " + name
}

// otherOfSize changes the contents of an input but not their size.
func (h *history) otherOfSize(name string) string {
	changed := []byte(h.project.files[name])
	for i, c := range changed {
		if c >= '0' && c <= '9' {
			changed[i] = '0' + (c-'0'+1+byte(h.random.IntN(8)))%10
		}
	}
	h.project.files[name] = string(changed)
	return string(changed)
}

func (h *history) addInput() string {
	name := fmt.Sprintf("in/a%d.txt", h.random.IntN(12))
	if _, ok := h.project.files[name]; ok || len(h.project.namesIn("in")) > 4 {
		return ""
	}
	h.project.files[name] = text(h.random)
	write(h.t, h.path(name), h.project.files[name])
	return "add " + name
}

func (h *history) removeInput() string {
	names := h.project.namesIn("in")
	if len(names) < 2 {
		return ""
	}
	name := pick(h.random, names)
	delete(h.project.files, name)
	if err := os.Remove(h.path(name)); err != nil {
		h.t.Fatal(err)
	}
	return "remove " + name
}

func (h *history) renameInput() string {
	from, to := pick(h.random, h.project.namesIn("in")), fmt.Sprintf("in/a%d.txt", h.random.IntN(12))
	if _, ok := h.project.files[to]; ok {
		return ""
	}
	h.project.files[to] = h.project.files[from]
	delete(h.project.files, from)
	if err := os.Rename(h.path(from), h.path(to)); err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprintf("rename %s to %s", from, to)
}

func (h *history) swapInputs() string {
	names := h.project.namesIn(pick(h.random, []string{"in", "pool", "drop"}))
	a, b := names[0], names[len(names)-1]
	if a == b {
		return ""
	}
	h.project.files[a], h.project.files[b] = h.project.files[b], h.project.files[a]
	for _, move := range [][2]string{{a, "swapped"}, {b, a}, {"swapped", b}} {
		if err := os.Rename(h.path(move[0]), h.path(move[1])); err != nil {
			h.t.Fatal(err)
		}
	}
	return fmt.Sprintf("swap %s and %s", a, b)
}

func (h *history) setWord() string {
	h.project.word = pick(h.random, []string{"word", "other", "a b", "$x'\"", ""})
	return "set word to " + h.project.word
}

func (h *history) setNumber() string {
	h.project.number = 1 + h.random.IntN(3)
	return fmt.Sprint("set count to ", h.project.number)
}
