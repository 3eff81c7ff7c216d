package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/rights"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/server/listen"
	"fairway/internal/server/people"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/test/files"
)

// listening is a lasting server that answers over the network, with a file of shares.
type listening struct {
	*service
	owner access.Connection
}

const sharesOfTwo = "groups:\n  physics: {users: {ada: 1, cyd: 1}}\n  biology: {users: {bob: 1}}\n"

func startListening(t *testing.T, root string, change func(*Config)) *listening {
	t.Helper()
	shares := filepath.Join(files.Folder(t, map[string]string{"shares.yaml": sharesOfTwo}), "shares.yaml")
	v := startServiceAs(t, root, twoStepsScript, func(c *Config) {
		c.Listen, c.Shares = "127.0.0.1:0", shares
		if change != nil {
			change(c)
		}
	})
	owner, err := access.ReadConnection(v.server.serviceFile())
	if err != nil {
		t.Fatal(err)
	}
	return &listening{v, owner}
}

// token makes a token.
func (l *listening) token(role rights.Role, user string, lasts time.Duration) (text string, number string) {
	l.t.Helper()
	r := &wire.CreateTokenRequest{Role: string(role), User: user, ExpiresSeconds: int64(lasts / time.Second)}
	if role == rights.Pilot {
		r.User, r.Site = "", "cluster"
	}
	made, err := l.client.Rights.CreateToken(l.t.Context(), r)
	if err != nil {
		l.t.Fatal(err)
	}
	return made.GetToken(), made.GetSummary().GetNumber()
}

// as is a client over the network with a token.
func (l *listening) as(token string) *listen.Connection {
	l.t.Helper()
	connection := l.owner
	connection.Token = access.Token(token)
	c, err := listen.DialLine(l.t.Context(), connection)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(c.Close)
	return c
}

// answer is what a call came to: its code, empty where it was carried out, and what it said.
type answer struct{ code, text string }

// call makes a call with a message in JSON, as a program would, whatever kind of call it is.
func call(t *testing.T, connection access.Connection, method protoreflect.MethodDescriptor, message string) answer {
	t.Helper()
	kind, body := "application/json", []byte(message)
	if method.IsStreamingServer() {
		kind = "application/connect+json"
		body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	client := access.NewLine(connection).Client(1)
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, access.BaseURL+procedure(method),
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(procedure(method), err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(procedure(method), err)
	}
	if response.StatusCode == http.StatusOK && !method.IsStreamingServer() {
		return answer{"", string(text)}
	}
	var said struct {
		Code    string
		Message string
		Error   struct{ Code, Message string }
	}
	for response.StatusCode == http.StatusOK && len(text) >= 5 {
		size := int(binary.BigEndian.Uint32(text[1:]))
		if last := text[0]&2 != 0; last {
			if err := json.Unmarshal(text[5:5+size], &said); err != nil {
				t.Fatal(err)
			}
			return answer{said.Error.Code, said.Error.Message}
		}
		text = text[5+size:]
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return answer{strconv.Itoa(response.StatusCode), string(text)}
	}
	return answer{said.Code, said.Message}
}

func procedure(m protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
}

// peoplesMethods are all calls of people.
func peoplesMethods() (all []protoreflect.MethodDescriptor) {
	for _, file := range []protoreflect.FileDescriptor{wire.File_api_proto, wire.File_rights_proto} {
		for i := range file.Services().Len() {
			for k := range file.Services().Get(i).Methods().Len() {
				all = append(all, file.Services().Get(i).Methods().Get(k))
			}
		}
	}
	return all
}

// about is a message of a call about a run, empty where the call is about none.
func about(m protoreflect.MethodDescriptor, run int) string {
	fields := m.Input().Fields()
	switch {
	case m.Name() == "RemoveRuns":
		return fmt.Sprintf(`{"runs": [%d]}`, run)
	case fields.ByName("run") == nil || m.Name() == "ListPilots":
		return ""
	}
	text := fmt.Sprintf(`{"run": %d`, run)
	switch m.Name() {
	case "ShowJob", "Explain", "Logs":
		text += `, "job": "1"`
	case "Cancel", "Retry", "Prioritize":
		text += `, "jobs": ["1"]`
	case "Fetch":
		text += `, "lfn": "joined.txt"`
	}
	return text + "}"
}

// The table of all calls against all roles, over the network, by reflection: what a role may not do is
// refused, and nothing else is.
func TestEveryCallAgainstEveryRole(t *testing.T) {
	l := startListening(t, t.TempDir(), nil)
	defer l.stop()
	with := func(token string) access.Connection {
		c := l.owner
		c.Token = access.Token(token)
		return c
	}
	read, _ := l.token(rights.Reader, "ada", time.Hour)
	submit, _ := l.token(rights.Submitter, "ada", 0)
	admin, _ := l.token(rights.Admin, "root", time.Hour)
	revoked, number := l.token(rights.Admin, "root", time.Hour)
	if _, err := l.client.Rights.RevokeToken(t.Context(), &wire.RevokeTokenRequest{Number: number}); err != nil {
		t.Fatal(err)
	}
	launch := l.owner
	launch.Launch, launch.Token = "cluster.1", access.NewToken()
	l.server.far.connections.Tokens.Allow(launch.Grant())
	for name, c := range map[string]struct {
		by   access.Connection
		role rights.Role
	}{
		"nobody":         {with(""), ""},
		"forged":         {with(forged(admin)), ""},
		"another number": {with(rights.Text(strings.Repeat("a", rights.NumberLength), admin[len(admin)-rights.SecretLength:])), ""},
		"made up":        {with(string(access.NewToken())), ""},
		"revoked":        {with(revoked), ""},
		"read":           {with(read), rights.Reader},
		"submit":         {with(submit), rights.Submitter},
		"admin":          {with(admin), rights.Admin},
		"owner":          {l.owner, rights.Admin},
		"launch":         {launch, rights.Pilot},
	} {
		for _, m := range peoplesMethods() {
			message := about(m, 999)
			if message == "" {
				message = "{}"
			}
			a := call(t, c.by, m, message)
			refused := a.code == "unauthenticated" || a.code == "permission_denied"
			action := rights.Calls[procedure(m)]
			may := action == rights.Anybody && c.role != rights.Pilot || c.role.May(action) && c.role != rights.Pilot
			if refused == may {
				t.Errorf("%s makes the call %s: %v", name, m.Name(), a)
			}
			if c.role == "" && refused && a.code != "unauthenticated" {
				t.Errorf("%s makes the call %s: %v", name, m.Name(), a)
			}
			for _, secret := range []string{admin, read, submit, revoked, string(l.owner.Token)} {
				if strings.Contains(a.text, secret) {
					t.Errorf("%s gets to know a token by the call %s", name, m.Name())
				}
			}
		}
		sync := wire.File_pilot_proto.Services().Get(0).Methods().Get(0)
		if a := call(t, c.by, sync, "{}"); (a.code == "415") != (c.role == rights.Pilot) {
			t.Errorf("%s makes the call %s: %v", name, sync.Name(), a)
		}
	}
}

// forged is a token with another last character.
func forged(token string) string {
	last := "A"
	if strings.HasSuffix(token, last) {
		last = "B"
	}
	return token[:len(token)-1] + last
}

// Another user's run is answered as one that is not there, by every call, also when it is retired.
func TestRunsOfOthersAreNotNamed(t *testing.T) {
	root, texts := t.TempDir(), files.Folder(t, threeTexts)
	l := startListening(t, root, nil)
	defer l.stop()
	users := map[string]*listen.Connection{}
	tokens := map[string]string{}
	for _, user := range []string{"ada", "bob", "cyd"} {
		tokens[user], _ = l.token(rights.Submitter, user, time.Hour)
		users[user] = l.as(tokens[user])
	}
	submit := func(user, key string) uint32 {
		t.Helper()
		made, err := users[user].SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{
			Workflow: []byte(twoSteps), Folder: texts, Key: key, User: "cyd",
		})
		if err != nil {
			t.Fatal(err)
		}
		return made.GetRun()
	}
	run := submit("ada", "nightly")
	failed := submit("ada", "")
	l.await(run)
	l.await(failed)
	l.retired(2)
	open, err := users["ada"].SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{
		Workflow: []byte("workflow: open\nopen: true\n"), Folder: texts,
	})
	if err != nil {
		t.Fatal(err)
	}
	with := func(token string) access.Connection {
		c := l.owner
		c.Token = access.Token(token)
		return c
	}
	readOnly, _ := l.token(rights.Reader, "bob", time.Hour)
	for _, token := range []string{tokens["bob"], readOnly} {
		for _, there := range []int{int(run), int(open.GetRun())} {
			for _, m := range peoplesMethods() {
				message := about(m, there)
				if message == "" || token == readOnly && rights.Calls[procedure(m)] != rights.Look {
					continue
				}
				is, isNot := call(t, with(token), m, message), call(t, with(token), m, about(m, 999))
				isNot.text = strings.ReplaceAll(isNot.text, "999", fmt.Sprint(there))
				if is != isNot || is.code != "not_found" {
					t.Errorf("%s tells of run %d of another user: %v, and of one that is not there: %v", m.Name(), there, is, isNot)
				}
			}
		}
	}
	for user, want := range map[string]string{"ada": "[3 2 1]", "cyd": "[3 2 1]", "bob": "[]"} {
		listed, err := users[user].ListRuns(t.Context(), &wire.ListRunsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		numbers := []uint32{}
		for _, r := range listed.GetRuns() {
			numbers = append(numbers, r.GetRun())
			if r.GetUser() != "ada" || r.GetGroup() != "physics" {
				t.Errorf("run %d belongs to %s of %s", r.GetRun(), r.GetUser(), r.GetGroup())
			}
		}
		if got := fmt.Sprint(numbers); got != want || listed.GetMore() {
			t.Errorf("%s sees the runs %s, want %s", user, got, want)
		}
	}
	// The same key is another submission of another user.
	if bobs := submit("bob", "nightly"); bobs == run {
		t.Errorf("bob's key finds ada's run %d", run)
	}
	if again := submit("ada", "nightly"); again != run {
		t.Errorf("ada's key does not find run %d, but %d", run, again)
	}
	// Who is in the group may change the run; nobody is let into a group of others.
	if _, err := users["cyd"].CloseInput(t.Context(), &wire.CloseInputRequest{Run: open.GetRun()}); err != nil {
		t.Error(err)
	}
	_, err = users["bob"].SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{
		Workflow: []byte(twoSteps), Folder: texts, Group: "physics",
	})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("bob submits for physics: %v", err)
	}
	if _, err := users["bob"].RemoveRuns(t.Context(), &wire.RemoveRunsRequest{Runs: []uint32{4,
		run}}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("bob removes: %v", err)
	}
}

// Tokens end: by time, by a person, with what is done with them, and in a copy of the folder.
func TestTokensEnd(t *testing.T) {
	root := t.TempDir()
	l := startListening(t, root, nil)
	texts := files.Folder(t, threeTexts)
	token, number := l.token(rights.Submitter, "ada", 0)
	other, _ := l.token(rights.Submitter, "bob", 0)
	ada, bob := l.as(token), l.as(other)
	open, err := ada.SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{
		Workflow: []byte("workflow: open\nopen: true\n"), Folder: texts,
	})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := ada.Progress(t.Context(), &wire.ProgressRequest{Run: open.GetRun(), Follow: true})
	if err != nil || !stream.Receive() {
		t.Fatal(err, stream.Err())
	}
	_, notHis := bob.Rights.RevokeToken(t.Context(), &wire.RevokeTokenRequest{Number: number})
	_, isNot := bob.Rights.RevokeToken(t.Context(), &wire.RevokeTokenRequest{Number: "aaaaaaaaaa"})
	if connect.CodeOf(notHis) != connect.CodeNotFound ||
		strings.ReplaceAll(notHis.Error(), number, "aaaaaaaaaa") != isNot.Error() {
		t.Errorf("bob revokes ada's token: %v, and one that is not there: %v", notHis, isNot)
	}
	listed, err := bob.Rights.ListTokens(t.Context(), &wire.ListTokensRequest{})
	if err != nil || len(listed.GetTokens()) != 1 || listed.GetTokens()[0].GetUsed() == nil {
		t.Errorf("bob sees %v, %v", listed, err)
	}
	if _, err := ada.Rights.RevokeToken(t.Context(), &wire.RevokeTokenRequest{Number: number}); err != nil {
		t.Error(err)
	}
	for stream.Receive() { // it was open before
	}
	if stream.Err() == nil {
		t.Error("a stream ends well whose token was revoked")
	}
	if _, err := l.as(token).ListRuns(t.Context(),
		&wire.ListRunsRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a revoked token: %v", err)
	}
	short, _ := l.token(rights.Submitter, "ada", time.Second)
	waiting, err := l.as(short).Progress(t.Context(), &wire.ProgressRequest{Run: open.GetRun(), Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	for waiting.Receive() { // until the token has expired
	}
	if _, err := l.as(short).ListRuns(t.Context(),
		&wire.ListRunsRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated ||
		!strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired token: %v", err)
	}
	if _, err := l.client.Rights.RevokeToken(t.Context(), &wire.RevokeTokenRequest{Number: "owner"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.as(string(l.owner.Token)).ListRuns(t.Context(),
		&wire.ListRunsRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("the owner's old token: %v", err)
	}
	renewed, err := access.ReadConnection(l.server.serviceFile())
	if err != nil {
		t.Fatal(err)
	}
	l.stop()
	l = startListening(t, root, nil)
	if _, err := l.as(other).ListRuns(t.Context(), &wire.ListRunsRequest{}); err != nil {
		t.Errorf("a token after a restart: %v", err)
	}
	if owner, err := l.as(string(renewed.Token)).Rights.WhoAmI(t.Context(), &wire.WhoAmIRequest{}); err != nil ||
		owner.GetRole() != "admin" || owner.GetProof() != "owner" {
		t.Errorf("the owner's token of an earlier server: %v, %v", owner, err)
	}
	if _, err := l.as(token).ListRuns(t.Context(),
		&wire.ListRunsRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a revoked token after a restart: %v", err)
	}
	l.stop()
}

// What people have done and were refused is known afterwards, and no secret is.
func TestWhatWasDoneIsKnown(t *testing.T) {
	l := startListening(t, t.TempDir(), nil)
	defer l.stop()
	token, number := l.token(rights.Submitter, "ada", time.Hour)
	ada := l.as(token)
	texts := files.Folder(t, threeTexts)
	made, err := ada.SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{
		Workflow: []byte(twoSteps), Folder: texts, File: "demo.yaml", Key: "nightly",
	})
	if err != nil {
		t.Fatal(err)
	}
	l.await(made.GetRun())
	_, _ = ada.RemoveRuns(t.Context(), &wire.RemoveRunsRequest{Runs: []uint32{made.GetRun(), 77}})
	_, _ = ada.Rights.ListAudit(t.Context(), &wire.ListAuditRequest{})
	_, _ = l.as("wrong").ListRuns(t.Context(), &wire.ListRunsRequest{})
	log, err := l.client.Rights.ListAudit(t.Context(), &wire.ListAuditRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range log.GetEntries() {
		who := e.GetUser() + " by " + e.GetProof()
		if e.GetProof() == string(rights.BySocket) {
			who = "owner by socket"
		}
		if e.GetProof() == string(rights.ByToken) && (e.GetToken() != number || !strings.HasPrefix(e.GetFrom(),
			"127.0.0.1:")) {
			t.Errorf("%v", e)
		}
		got = append(got, fmt.Sprintf("%s: %s %d %s (%s)", who, e.GetCall(), e.GetRun(), e.GetOutcome(), e.GetAbout()))
	}
	want := []string{
		" by : ListRuns 0 unauthenticated ()",
		"ada by token: ListAudit 0 permission_denied ()",
		"ada by token: RemoveRuns 0 not_found (runs 1, 77)",
		"ada by token: SubmitWorkflow 1 ok (demo.yaml with the key nightly)",
		"owner by socket: CreateToken 0 ok (token " + number + " with the role submit for ada)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	text, err := io.ReadAll(mustOpen(t, filepath.Join(l.server.folders.State, "audit")))
	if err != nil || bytes.Contains(text, []byte(token)) || bytes.Contains(text, []byte(token[len(token)-20:])) {
		t.Errorf("the log has a token, or %v", err)
	}
}

// Nothing that can be read of the state has the text of a token, but the owner's file.
func TestTokensAreKeptAsHashes(t *testing.T) {
	root := t.TempDir()
	l := startListening(t, root, nil)
	token, _ := l.token(rights.Submitter, "ada", time.Hour)
	if _, err := l.as(token).ListRuns(t.Context(), &wire.ListRunsRequest{}); err != nil {
		t.Fatal(err)
	}
	l.stop()
	for _, name := range everyFile(t, root) {
		text, err := io.ReadAll(mustOpen(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(token[len(token)-rights.SecretLength:])) {
			t.Errorf("%s has the token", name)
		}
		if path.Base(name) != "service" && bytes.Contains(text, []byte(l.owner.Token)) {
			t.Errorf("%s has the owner's token", name)
		}
	}
}

// One who makes very many calls keeps nobody else waiting for long, and has a bounded number of
// connections.
func TestManyRequestsOfOne(t *testing.T) {
	l := startListening(t, t.TempDir(), nil)
	defer l.stop()
	token, _ := l.token(rights.Submitter, "ada", time.Hour)
	other, _ := l.token(rights.Submitter, "bob", time.Hour)
	const connections = 80
	requests := 4000
	if os.Getenv("FAIRWAY_SOAK") != "" {
		requests = 100_000
	}
	busy, cancel := context.WithCancel(t.Context())
	defer cancel()
	done, refused := make(chan int, connections), make(chan int, connections)
	for range connections {
		client := l.as(token)
		go func() {
			n, no := 0, 0
			for n+no < requests/connections && busy.Err() == nil {
				if _, err := client.ListRuns(busy, &wire.ListRunsRequest{}); err != nil {
					no++
				} else {
					n++
				}
			}
			done <- n
			refused <- no
		}()
	}
	bob, longest := l.as(other), time.Duration(0)
	for range 200 {
		began := time.Now()
		if _, err := bob.ListRuns(t.Context(), &wire.ListRunsRequest{}); err != nil {
			t.Fatalf("bob is refused while ada asks: %v", err)
		}
		longest = max(longest, time.Since(began))
	}
	answered, turnedAway := 0, 0
	for range connections {
		answered += <-done
		turnedAway += <-refused
	}
	t.Logf("of %d calls %d were answered and %d refused; another user waited %v at most", requests, answered, turnedAway,
		longest)
	if answered == 0 || turnedAway == 0 || longest > 30*time.Second {
		t.Errorf("%d answers; another user waited %v", answered, longest)
	}
}

func mustOpen(t *testing.T, name string) io.Reader {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(text)
}

// everyFile are the files below a folder.
func everyFile(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A token of pilots is good for pilots of its site, as long as it is not revoked, and for nothing else; the
// server counts them although no batch system has started them, also after a restart.
func TestPilotsOfPeople(t *testing.T) {
	root := t.TempDir()
	site := Site{
		Site: taskqueue.Site{Name: "cluster", MaxPilots: 2},
		System: func(folder.Layout, func(string, any) (launch.Way, error)) (batch.System, error) {
			return idleSystem{}, nil
		},
		Pilot: func(folder.Layout) any { return map[string]string{"scratch": "/tmp"} },
	}
	start := func() *listening {
		return startListening(t, root, func(c *Config) {
			c.Sites, c.LeaveTime = []Site{site},
				50*time.Millisecond
		})
	}
	l := start()
	if _, err := l.client.Rights.CreateToken(t.Context(), &wire.CreateTokenRequest{Role: "pilot",
		Site: "moon"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a site that there is not: %v", err)
	}
	made, err := l.client.Rights.CreateToken(t.Context(), &wire.CreateTokenRequest{Role: "pilot", Site: "cluster",
		ExpiresSeconds: 3600})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pilot.connect")
	if err := access.WritePrivate(file, made.GetConnection()); err != nil {
		t.Fatal(err)
	}
	connection, err := access.ReadConnection(file)
	if err != nil || !strings.Contains(string(connection.Pilot), "scratch") || connection.Site != "cluster" {
		t.Fatalf("%+v, %v", connection, err)
	}
	sync := func(by access.Connection, ending, site string, seq uint64) error {
		client := access.NewLine(by).Client(1)
		defer client.CloseIdleConnections()
		_, err := wire.NewTaskQueueClient(client, access.BaseURL).Sync(t.Context(), &wire.SyncRequest{
			Protocol: wire.Protocol, Pilot: by.Launch + "-" + ending, Seq: seq, Full: true,
			Hello: &wire.PilotInfo{Launch: by.Launch, Site: site, Host: "h", Has: &wire.Resources{MilliCpus: 1000}},
		})
		return err
	}
	if err := sync(connection, "a", "cluster", 1); err != nil {
		t.Fatal(err)
	}
	pilots, err := l.client.ListPilots(t.Context(), &wire.ListPilotsRequest{})
	if err != nil || len(pilots.GetPilots()) != 1 || pilots.GetPilots()[0].GetLaunch() != connection.Launch {
		t.Errorf("%v, %v", pilots, err)
	}
	if err := sync(connection, "a", "elsewhere", 2); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("of another site: %v", err)
	}
	for i := range access.MaxLaunchPilots - 1 {
		if err := sync(connection, fmt.Sprint("x", i), "cluster", 1); err != nil {
			t.Error(err)
		}
	}
	if err := sync(connection, "more", "cluster", 1); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("one too many: %v", err)
	}
	for _, m := range peoplesMethods() {
		if a := call(t, connection, m, "{}"); a.code != "permission_denied" && a.code != "unauthenticated" {
			t.Errorf("a pilot makes the call %s: %v", m.Name(), a)
		}
		person := connection
		person.Launch = access.Person
		if a := call(t, person, m, "{}"); a.code != "permission_denied" && rights.Calls[procedure(m)] != rights.Anybody {
			t.Errorf("a pilot makes the call %s as a person: %v", m.Name(), a)
		}
	}
	ada, _ := l.token(rights.Admin, "ada", time.Hour)
	if person := connection; true {
		if person.Token = access.Token(ada); connect.CodeOf(sync(person, "b", "cluster", 1)) != connect.CodeUnauthenticated {
			t.Error("an administrator is a pilot")
		}
	}
	l.stop()
	l = start()
	if moved, err := access.Move(file, l.owner.Addresses, l.owner.Pin); err != nil {
		t.Fatal(err)
	} else if err := sync(moved, "a", "cluster", 3); err != nil {
		t.Errorf("after a restart: %v", err)
	} else {
		number := made.GetSummary().GetNumber()
		if _, err := l.client.Rights.RevokeToken(t.Context(), &wire.RevokeTokenRequest{Number: number}); err != nil {
			t.Fatal(err)
		}
		if err := sync(moved, "a", "cluster", 4); connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("a pilot whose token was revoked: %v", err)
		}
	}
	l.stop()
}

// The socket of a proxy believes the proxy, and only users of this machine who are named.
func TestSocketOfAProxy(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(placeOfASocket(t), "proxy")
	file := filepath.Join(files.Folder(t, map[string]string{
		"rights.yaml": "proxy: {socket: " + at + ", peers: [" + me.Username + "]}\n",
	}), "rights.yaml")
	l := startListening(t, t.TempDir(), func(c *Config) {
		c.Rights = file
		c.Web = &Web{Handler: func(_ *api.Service, door *people.Door) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p, named, err := door.Proxied(r)
				fmt.Fprint(w, "page for ", p.User, named, err)
			})
		}}
	})
	defer l.stop()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", at)
	}}}
	ask := func(path, user string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://fairway"+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if user != "" {
			r.Header.Set("X-Remote-User", user)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	for _, c := range []struct {
		path, user string
		code       int
		says       string
	}{
		{"/fairway.v1.Rights/WhoAmI", "ada", http.StatusOK, `"groups":["physics"]`},
		{"/fairway.v1.Rights/WhoAmI", "eve", http.StatusForbidden, "may not use this server"},
		{"/fairway.v1.Rights/WhoAmI", "", http.StatusUnauthorized, "has no token"},
		{"/fairway.v1.Rights/ListAudit", "ada", http.StatusForbidden, "the role submit"},
		{"/fairway.v1.TaskQueue/Sync", "ada", http.StatusForbidden, "the role submit"},
		{"/", "ada", http.StatusOK, "page for adatrue <nil>"},
	} {
		if code, text := ask(c.path, c.user); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s of %s: %d %s", c.path, c.user, code, text)
		}
	}
	// Over the network the header says nothing.
	connection := l.owner
	connection.Token = ""
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, access.BaseURL+"/fairway.v1.Rights/WhoAmI",
		strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Remote-User", "ada")
	answer, err := access.NewLine(connection).Client(1).Do(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v, %v", answer, err)
	}
	if err == nil {
		answer.Body.Close()
	}
	if _, err := listen.Socket(filepath.Join(placeOfASocket(t), "x"), []string{"no such user here"}); err == nil {
		t.Error("a user that there is not may use a socket")
	}
}

// placeOfASocket is a folder whose path leaves room for the name of a socket.
func placeOfASocket(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "fw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
