package workflow

import (
	"strings"
	"testing"
)

func TestAccessProblems(t *testing.T) {
	for text, want := range map[string]string{
		"a: {each: 'raw/{n}', access: streaming, writes: 'a/{n}', command: cat $in}":               `step "a": access: "streaming" is no access; did you mean "stream"?`,
		"a: {each: 'raw/{n}', access: symlink, writes: 'a/{n}', command: cat $in}":                 `did you mean "link"?`,
		"a: {each: 'raw/{n}', access: strem, writes: 'a/{n}', command: cat $in}":                   `did you mean "stream"?`,
		"a: {each: 'raw/{n}', access: 7, writes: 'a/{n}', command: cat $in}":                       `"7" is no access; write link, copy or stream`,
		"a: {each: 'raw/{n}', access: [stream], writes: 'a/{n}', command: cat $in}":                `step "a": access must be one word, not a list; write link, copy or stream, or a mapping with a word for each variable of a file`,
		"a: {each: 'raw/{n}', access: , writes: 'a/{n}', command: cat $in}":                        `step "a": access must be one word, not nothing; write link, copy or stream, or a mapping`,
		"a: {each: {bam: 'raw/{n}'}, access: {bam: }, writes: 'a/{n}', command: cat $in}":          `step "a": access: bam must be one word, not nothing; write link, copy or stream`,
		"a: {reads: 'raw/1', rewrites: {k: 'raw/2'}, access: {k: stream}, command: cat $in}":       `step "a": access: the step rewrites "k", and files that a step rewrites have no access; remove it`,
		"a: {access: stream, writes: a, command: 'true'}":                                          `the step reads no file that could be streamed; remove it`,
		"a: {reads: 'dir/', access: stream, writes: a, command: ls $in}":                           `the step reads no file that could be streamed`,
		"a: {reads: {d: dir/}, access: {d: stream}, writes: a, command: ls $d}":                    `step "a": access: "d" is a folder, and only files can be streamed`,
		"a: {each: {bam: 'raw/{n}'}, access: {ban: stream}, writes: 'a/{n}', command: cat $in}":    `the step reads no file with the name "ban"; did you mean "bam"?`,
		"a: {each: 'raw/{n}', access: {bam: stream}, writes: 'a/{n}', command: cat $in}":           `the step reads no file with a name; give the file a name`,
		"a: {each: 'raw/{n}', access: stream, writes: 'a/{n}', command: 'view \"raw/$n\" > $out'}": `step "a": its inputs are streamed, and the command has none of the variables that say where they are; write "$in"`,
		"a: {each: 'raw/{n}', access: stream, writes: 'a/{n}', command: view raw/1}":               `the command has none of the variables`,
		"a: {each: 'raw/{n}', stream: true, writes: 'a/{n}', command: cat $in}":                    "write `access: stream`",
		"a: {each: 'raw/{n}', stageInMode: copy, writes: 'a/{n}', command: cat $in}":               "write `access: link`, `access: copy` or `access: stream`",
		"a: {each: 'raw/{n}', should_transfer_files: 'NO', writes: 'a/{n}', command: cat $in}":     "write `access: link`, `access: copy` or `access: stream`",
		"a: {each: 'raw/{n}', retrieve: false, writes: 'a/{n}', command: cat $in}":                 "write `access: stream`",
		"a: {each: 'raw/{n}', transfer_input_files: 'x.txt', writes: 'a/{n}', command: cat $in}":   "name the files under each or reads",
	} {
		_, err := Parse("t.yaml", []byte("workflow: w\ninputs: {raw: {files: 'raw/{n}', as: 'raw/{n}'}, dir: {files: "+
			"'dir/', as: 'dir/'}}\nsteps:\n  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	_, err := Parse("t.yaml", []byte("workflow: w\ninputs: {raw: {files: 'raw/', access: stream}}\nsteps: {a: {reads: "+
		"raw/, writes: a, command: ls $in}}\n"))
	if err == nil || !strings.Contains(err.Error(), `the input "raw": access: the input has folders, and only files can be streamed`) {
		t.Error(err)
	}
	_, err = Parse("t.yaml", []byte("workflow: w\ninputs: {raw: {files: raw, access: {raw: stream}}}\nsteps: {a: "+
		"{reads: raw, writes: a, command: ls $in}}\n"))
	if err == nil || !strings.Contains(err.Error(), `the input "raw": access must be one word, not a mapping; write link, copy or stream`) {
		t.Error(err)
	}
	// A command that may find its inputs in another way is left alone.
	for _, command := range []string{`eval "$x"`, `xargs cat < "$FAIRWAY_INPUTS_FILE"`, `cat "$bam"`} {
		if _, err := Parse("t.yaml", []byte("workflow: w\nparameters: {x: 1}\ninputs: {raw: {files: 'raw/{n}', as: "+
			"'raw/{n}'}}\nsteps:\n  a:\n    each: {bam: 'raw/{n}'}\n    access: stream\n    writes: 'a/{n}'\n    command: |\n "+
			"     "+command+"\n")); err != nil {
			t.Error(err)
		}
	}
}
