package pilot

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"fairway/internal/shelltext"
)

// A command that is one program with its arguments is started without a shell, as make does: to
// start bash takes longer than many a job. The program finds what bash would have made of its
// environment. Whatever could make a difference, such as a startup file, has bash do it.

// simpleTexts remembers which texts are simple commands, since all jobs of a step have the same.
type simpleTexts struct {
	mu    sync.Mutex // guards known
	known map[string][]shelltext.Word
}

// maxSimpleTexts bounds them; beyond it all are read anew.
const maxSimpleTexts = 256

func (s *simpleTexts) words(text string) []shelltext.Word {
	s.mu.Lock()
	defer s.mu.Unlock()
	words, ok := s.known[text]
	if !ok {
		if shelltext.Interpreter(text) == nil {
			words, _ = shelltext.Read(text).Simple()
		}
		if s.known == nil || len(s.known) == maxSimpleTexts {
			s.known = map[string][]shelltext.Word{}
		}
		s.known[text] = words
	}
	return words
}

// direct gives the program and the arguments of a command that needs no shell; nil if it needs one.
func (p *pilot) direct(a *attempt, text string) (argv []string) {
	own := a.Payload.GetEnvironment()
	if p.base.shellReads || own["PATH"] != "" || a.Payload.GetInterpreter() != "" {
		return nil
	}
	for name := range own {
		if shellReads(name) {
			return nil
		}
	}
	if argv = p.expanded(a, text); argv == nil {
		return nil
	}
	if strings.Contains(argv[0], "/") {
		return nil
	}
	if path, err := p.base.find(argv[0], ""); err != nil || !p.base.isBinary(path) {
		return nil
	}
	return argv
}

// expanded gives the words of a simple command, with the values of its variables; nil for others.
func (p *pilot) expanded(a *attempt, text string) (argv []string) {
	words := p.simple.words(text)
	if words == nil {
		return nil
	}
	streamed, err := a.In.Variables()
	if err != nil || len(streamed) > 0 {
		return nil
	}
	own := a.Payload.GetEnvironment()
	for _, word := range words {
		var value strings.Builder
		for _, part := range word {
			text := part.Text
			if part.Variable != "" {
				var set bool
				if text, set = own[part.Variable]; !set {
					return nil
				}
			}
			value.WriteString(text)
		}
		argv = append(argv, value.String())
	}
	return argv
}

// shellReads reports whether a variable of the environment changes what bash does.
func shellReads(name string) bool {
	return strings.HasPrefix(name, "BASH") || name == "SHELLOPTS" || name == "POSIXLY_CORRECT"
}

// isBinary reports whether the kernel executes a program itself. Of others the shell has to find
// out what they are.
func (b *base) isBinary(path string) bool {
	if is, ok := b.binaries.Load(path); ok {
		return is.(bool)
	}
	is := false
	if f, err := os.Open(path); err == nil {
		var magic [4]byte
		_, err := io.ReadFull(f, magic[:])
		is = err == nil && bytes.Equal(magic[:], []byte("\x7fELF")) && unix.Access(path, unix.X_OK) == nil
		_ = f.Close()
	}
	b.binaries.Store(path, is)
	return is
}

// asByShell are the variables that a shell in a folder would have set for a program that it ends
// by becoming.
func (b *base) asByShell(folder, path string) [][2]string {
	level := 0
	if at, ok := b.inherited.index["SHLVL"]; ok {
		level, _ = strconv.Atoi(strings.TrimPrefix(b.inherited.entries[at], "SHLVL="))
	}
	return [][2]string{{"PWD", folder}, {"SHLVL", strconv.Itoa(level)}, {"_", path}}
}
