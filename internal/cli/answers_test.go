//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"fairway/internal/cli/console"
	"fairway/internal/cli/look"
	"fairway/internal/cli/service"
	"fairway/internal/cli/simulate"
	"fairway/internal/recording"
	"fairway/internal/wire"
)

// answers are what commands print with --json, in their kinds.
var answers = map[string][]any{
	"audit":        {&wire.ListAuditResponse{}},
	"cache":        {&wire.ListCachesResponse{}},
	"cancel":       {&wire.ChangedJobs{}},
	"catalog lfn":  {look.TranslatedNames{}},
	"catalog pfn":  {look.TranslatedNames{}},
	"check":        {checkedObject{}, checkedSites{}},
	"clean":        {cleanedObject{}},
	"close":        {&wire.CloseInputResponse{}},
	"exec":         {calledJobs{}},
	"explain":      {&wire.ExplainResponse{}, look.ExplainedStep{}},
	"files":        {&wire.ListFilesResponse{}},
	"get":          {look.Fetched{}, look.FetchedObject{}},
	"graph":        {look.GraphObject{}},
	"init":         {initialised{}},
	"jobs":         {&wire.ListJobsResponse{}},
	"login":        {&wire.LoginResponse{}},
	"logs":         {look.LogsObject{}, look.PilotLogObject{}},
	"map":          {calledJobs{}},
	"open":         {&wire.ProgressReport{}, &wire.SubmitWorkflowResponse{}, detachedProcess{}},
	"pilots":       {&wire.ListPilotsResponse{}},
	"prioritize":   {&wire.ChangedJobs{}},
	"retry":        {&wire.ChangedJobs{}},
	"rm":           {&wire.RemoveRunsResponse{}},
	"run":          {&wire.ProgressReport{}, planObject{}, detachedProcess{}, detachedJob{}},
	"runs":         {&wire.ListRunsResponse{}},
	"shares":       {&wire.ListSharesResponse{}},
	"show":         {&wire.JobDetail{}},
	"sim compare":  {simulate.ComparedRows{}},
	"sim faults":   {simulate.FacedFaults{}},
	"sim paper":    {simulate.PaperClaims{}},
	"sim replay":   {recording.Replayed{}},
	"site add":     {sitesObject{}},
	"site list":    {sitesObject{}},
	"site remove":  {sitesObject{}},
	"site show":    {shownSite{}},
	"site test":    {testedSite{}},
	"stop":         {&wire.StopResponse{}},
	"submit":       {&wire.SubmitWorkflowResponse{}, &wire.ProgressReport{}},
	"token create": {&wire.CreateTokenResponse{}},
	"token list":   {&wire.ListTokensResponse{}},
	"token revoke": {service.RevokedObject{}},
	"version":      {console.VersionObject{}},
	"watch":        {&wire.ProgressReport{}},
	"what-if":      {look.WhatIfAnswer{}},
	"whoami":       {&wire.WhoAmIResponse{}},
	"why":          {look.WhyAnswer{}},
}

// textOnly are commands that print what they are asked for, or nothing, and no object.
var textOnly = []string{"completion", "exit-codes", "export", "report", "serve", "sim", "site template", "help",
	"catalog", "site", "token"}

// keysOf are the keys of an answer, with those of what stands in it. Messages have those of api.proto.
func keysOf(answer any) (keys []string) {
	if message, ok := answer.(proto.Message); ok {
		fields := message.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			keys = append(keys, string(fields.Get(i).Name()))
		}
		return keys
	}
	return keysBelow("", reflect.TypeOf(answer))
}

func keysBelow(above string, of reflect.Type) (keys []string) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			keys = append(keys, keysBelow(above, field.Type)...)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		keys = append(keys, above+name)
		below, in := field.Type, above+name+"."
		for below.Kind() == reflect.Slice || below.Kind() == reflect.Pointer {
			if below.Kind() == reflect.Slice {
				in = above + name + "[]."
			}
			below = below.Elem()
		}
		if below.Kind() == reflect.Struct {
			keys = append(keys, keysBelow(in, below)...)
		}
	}
	return keys
}

// keysTable tells the keys of all commands.
func keysTable(root *cobra.Command) string {
	var text strings.Builder
	text.WriteString("\n| command | keys |\n| --- | --- |\n")
	for _, name := range leaves(root) {
		var kinds []string
		for _, answer := range answers[name] {
			keys := "none"
			if all := keysOf(answer); len(all) > 0 {
				keys = "`" + strings.Join(all, "` `") + "`"
			}
			kinds = append(kinds, keys)
		}
		if len(kinds) > 0 {
			fmt.Fprintf(&text, "| `%s` | %s |\n", name, strings.Join(kinds, "; or "))
		}
	}
	return text.String()
}

// leaves are the commands that do something, by name.
func leaves(root *cobra.Command) (names []string) {
	var walk func(*cobra.Command)
	walk = func(command *cobra.Command) {
		if command.Hidden {
			return
		}
		if command.Runnable() && command.HasParent() {
			names = append(names, strings.TrimPrefix(command.CommandPath(), "fairway "))
		}
		for _, below := range command.Commands() {
			walk(below)
		}
	}
	walk(root)
	slices.Sort(names)
	return names
}

// The keys of all answers stand in a document, and are what is printed.
func TestKeysOfAnswersAreTold(t *testing.T) {
	names := leaves(allCommands(new(console.Console)))
	for _, name := range names {
		if _, ok := answers[name]; !ok && !slices.Contains(textOnly, name) {
			t.Errorf("the answer of %s stands nowhere: add its type to answers", name)
		}
	}
	for name := range answers {
		if !slices.Contains(names, name) {
			t.Errorf("there is no command %s", name)
		}
	}
	t.Setenv(console.ServerVariable, "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	finished := flagFolder(t)
	for _, call := range []string{
		"run --keep-going", "jobs", "show bad", "explain bad", "explain up", "files", "logs bad", "cache", "retry bad",
		"prioritize bad --priority 3",
		"cancel bad", "why", "what-if", "get all.txt got.txt", "get {any}.txt got", "graph", "check", "run --dry-run",
		"version", "site list", "exec --writes o --reads none -- true", "sim faults --seeds 1", "clean",
	} {
		words := strings.Fields(call)
		seen := called(t, finished, finished, call+" --json")
		if at := slices.Index(words, "--"); at > 0 {
			continue
		}
		var object map[string]json.RawMessage
		if err := json.NewDecoder(strings.NewReader(seen)).Decode(&object); err != nil {
			t.Errorf("%s --json: %v: %s", call, err, few(seen))
			continue
		}
		name := words[0]
		if _, ok := answers[name]; !ok {
			name = strings.Join(words[:2], " ")
		}
		if !slices.ContainsFunc(answers[name], func(answer any) bool {
			known := slices.DeleteFunc(keysOf(answer), func(key string) bool { return strings.ContainsAny(key, ".") })
			return len(known) == len(object) && !slices.ContainsFunc(known, func(key string) bool { return object[key] == nil })
		}) {
			t.Errorf("%s --json prints other keys than are told: %s", call, few(seen))
		}
	}
}
