package workflow

import (
	"strings"
	"testing"
)

// What a command can never have is told before it runs, with its place.
func TestUnknownVariablesOfCommandsAreTold(t *testing.T) {
	for text, want := range map[string]string{
		"command: cat $inn > \"$out\"":                                             `9:18: step "s": the command uses the variable "inn", which nothing sets; did you mean "in"?`,
		"command: \"cat $in $in $inn > $out\"":                                     `9:27: step "s": the command uses the variable "inn"`,
		"command: |\n      cat \"$in\" |\n      sort -k $collumn > \"$out\"":       `11:15: step "s": the command uses the variable "collumn", which nothing sets; did you mean "column"?`,
		"command: >-\n      cat \"$in\"\n      $x > \"$out\"":                      `11:7: step "s": the command uses the variable "x", which nothing sets; set it, or`,
		"command: run -t $threads $in > $out":                                      `did you mean "FAIRWAY_CPUS"?`,
		"command: cp $in $output":                                                  `did you mean "out"?`,
		"command: cat $FAIRWAY_INPUT_FILE":                                         `did you mean "FAIRWAY_INPUTS_FILE"?`,
		"command: awk \"{ print $1 }\" $in > $out":                                 `9:27: step "s": the command uses $1, but it has no arguments; put a program`,
		"command: sort {in} > $out":                                                `9:19: step "s": {in} in the command stays as it is, since a command has its values as variables; write "$in"`,
		"command: sort {input} > {output}":                                         `write "$in"`,
		"command: echo {sample} > $out":                                            `write "$sample"`,
		"command: echo {wildcards.sample} {params.column} > $out":                  `write "$sample"`,
		"split: {records: 1, count: 'wc -l < $inn'}\n    command: \"true $chunk\"": `9:41: step "s": the count uses the variable "inn"`,
		"shell: sh\n    command: cat $inn > $out":                                  `"inn"`,
	} {
		out := "s/{sample}"
		if strings.Contains(text, "split") {
			out += ".{chunk}"
		}
		_, err := Parse("t.yaml", []byte("workflow: w\nparameters:\n  column: 1\ninputs: {raw: {files: 'raw/{sample}', as: "+
			"'raw/{sample}'}}\nsteps:\n  s:\n    each: raw/{sample}\n    writes: "+out+"\n    "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// What a command sets itself, or may find in its environment, is no error; nor
// is what no shell reads.
func TestVariablesThatMayBeThereAreNotTold(t *testing.T) {
	for _, text := range []string{
		`x=1; echo $x > $out`, `echo $HOME $OMP_NUM_THREADS $https_proxy > $out`, `echo ${x:-} > $out`, `for f in $in; do cat $f; done > $out`,
		`awk '{ print $1, $NF, x }' $in > $out`, `. ./settings; echo $x > $out`, `echo $sample $column $one $two $FAIRWAY_CPUS > $out`, `echo "no end $x`,
	} {
		if _, err := Parse("t.yaml", []byte(commandFrame("command: "+yamlText(text)))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"shell: python3\n    command: print(f'{sample} $x')", "shell: /bin/bash\n    command: echo $x",
		"command: |\n      #!/usr/bin/perl\n      print $x;",
	} {
		if _, err := Parse("t.yaml", []byte(commandFrame(text))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func yamlText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func commandFrame(text string) string {
	return "workflow: w\nparameters: {column: 1}\ninputs: {raw: {files: 'raw/{sample}', as: 'raw/{sample}'}, b: {files: " +
		"'b/{sample}', as: 'b/{sample}'}}\nsteps:\n  s:\n    each: {one: 'raw/{sample}', two: 'b/{sample}'}\n    writes: " +
		"s/{sample}\n    " + text + "\n"
}

// Names that mean something to the loader, to the shell or to Fairway are none
// for values.
func TestReservedVariables(t *testing.T) {
	for _, name := range []string{
		"LD_AUDIT", "LD_PRELOAD", "LD_DEBUG", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "UID", "RANDOM", "SECONDS", "PS4", "_",
		"GLIBC_TUNABLES", "FAIRWAY_X", "PATH", "in", "CDPATH", "OPTIND",
	} {
		_,
			err := Parse("t.yaml", []byte("workflow: w\nparameters: {"+name+": 1}\nsteps: {s: {writes: s, command: 'true'}}\n"))
		if err == nil || !strings.Contains(err.Error(), "would hide") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
