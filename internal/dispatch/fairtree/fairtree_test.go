package fairtree

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// The ranks are those of Slurm's Fair Tree, with its rules for ties, as they come out of exact
// arithmetic.
func TestRanksAreThoseOfTheFairTree(t *testing.T) {
	first := seed.Of(t)
	seeds := []uint64{77458304} // 5/6 that was rounded in two ways
	for i := range uint64(300) {
		seeds = append(seeds, first+i)
	}
	for _, of := range seeds {
		rng := rand.New(rand.NewPCG(of, 3))
		tree := New[int]()
		tree.Arrange(1, taskqueue.Shares{Of: randomShares(rng, 3)})
		tree.root.useAtRandom(rng)
		for n := range tree.All {
			n.rekey()
		}
		tree.Of(taskqueue.Account{}) // counts among the others
		x := exactRanking{of: make(map[*Node[int]]int)}
		x.rank(tree.root.children, false)
		for n, rank := range tree.Ranks() {
			if x.of[n] != rank {
				t.Fatalf("FAIRWAY_SEED=%d: %s has rank %d instead of %d", of, n.Title(), rank, x.of[n])
			}
		}
	}
}

func randomShares(rng *rand.Rand, depth int) (list []taskqueue.Share) {
	for i := range 1 + rng.IntN(4) {
		s := taskqueue.Share{Name: fmt.Sprint("s", i), Weight: rng.Int64N(4), User: depth == 0 || rng.IntN(2) == 0}
		if !s.User {
			s.Of = randomShares(rng, depth-1)
		}
		list = append(list, s)
	}
	return list
}

// useAtRandom gives users little usage, so that there are ties.
func (n *Node[U]) useAtRandom(rng *rand.Rand) float64 {
	if n.user {
		n.settled = float64(rng.IntN(4) * rng.IntN(2))
	}
	for _, x := range n.children {
		n.settled += x.useAtRandom(rng)
	}
	return n.settled
}

// exactRanking is fair_tree.c of Slurm, told again: -1 stands for infinity.
type exactRanking struct {
	of      map[*Node[int]]int
	n, last int
}

func exactFS(n *Node[int]) *big.Rat {
	var weights int64
	for _, x := range n.parent.children {
		weights += x.said.Weight
	}
	switch {
	case n.said.Weight == 0:
		return new(big.Rat)
	case n.settled == 0:
		return big.NewRat(-1, 1)
	}
	shares := big.NewRat(n.said.Weight, weights)
	return shares.Quo(shares, big.NewRat(int64(n.settled), int64(n.parent.settled)))
}

func (x *exactRanking) rank(siblings []*Node[int], accountTied bool) {
	siblings = slices.Clone(siblings)
	slices.SortStableFunc(siblings, func(a, b *Node[int]) int {
		fa, fb := exactFS(a), exactFS(b)
		if fa.Cmp(fb) == 0 {
			return ofUsers(b) - ofUsers(a)
		}
		if fa.Sign() < 0 || fb.Sign() < 0 {
			return fa.Cmp(fb)
		}
		return fb.Cmp(fa)
	})
	for i := 0; i < len(siblings); i++ {
		n := siblings[i]
		tied := i == 0 && accountTied || i > 0 && exactFS(siblings[i-1]).Cmp(exactFS(n)) == 0
		if n.user {
			if x.n++; !tied {
				x.last = x.n
			}
			x.of[n] = x.last
			continue
		}
		children := slices.Clone(n.children)
		for i+1 < len(siblings) && exactFS(siblings[i+1]).Cmp(exactFS(n)) == 0 {
			i++
			children = append(children, siblings[i].children...)
		}
		x.rank(children, tied)
	}
}

// model is a tree that keeps lists of what happened, and adds them up anew for each question.
type model struct {
	said   taskqueue.Shares
	users  map[taskqueue.Account]bool
	given  []gift
	ready  map[taskqueue.Account]int
	stored map[taskqueue.Account]int64
	kept   map[taskqueue.Account]int64
	held   bool
}

// gift is something that was given to a user.
type gift struct {
	to       taskqueue.Account
	site     string
	takes    Amount
	at       taskqueue.Instant
	expected float64
	ended    taskqueue.Instant // 0: it has not
	used     float64
}

// within reports whether an account is in a group, or is it: groups end with a slash.
func within(a taskqueue.Account, name string) bool {
	path := "/" + a.Group + "/"
	if a.Group == "" {
		path = "/"
	}
	return path+a.User == name || strings.HasSuffix(name, "/") && strings.HasPrefix(path, name)
}

func (m *model) used(now taskqueue.Instant, name string) (sum float64) {
	for _, g := range m.given {
		if !within(g.to, name) {
			continue
		}
		at, what := g.at, g.expected
		if g.ended != 0 {
			at, what = g.ended, g.used
		}
		sum += what * math.Exp2(-float64(now-at)/float64(m.said.HalfLife))
	}
	return sum
}

func (m *model) takes(name, site string) (sum Amount) {
	for _, g := range m.given {
		if g.ended == 0 && within(g.to, name) && (site == "" || g.site == site) {
			sum = sum.plus(g.takes, 1)
		}
	}
	return sum
}

// weightOf is that of what a name says, and its limits.
func (m *model) weightOf(name string) (int64, taskqueue.Quota) {
	list := m.said.Of
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	for i, part := range parts {
		user := i == len(parts)-1
		if part == "" {
			break
		}
		at := slices.IndexFunc(list, func(s taskqueue.Share) bool { return s.Name == part && s.User == user })
		switch {
		case at < 0:
			return 1, taskqueue.Quota{}
		case user || i == len(parts)-2 && parts[i+1] == "":
			return list[at].Weight, list[at].Limits
		}
		list = list[at].Of
	}
	return 1, taskqueue.Quota{}
}

// above are the names of a user and all that it is in, but for the root.
func above(a taskqueue.Account) []string {
	names, path := []string{}, "/"
	if a.Group != "" {
		for part := range strings.SplitSeq(a.Group, "/") {
			path += part + "/"
			names = append(names, path)
		}
	}
	return append(names, path+a.User)
}

// precedes reports whether the turn of one user must come before that of another one: at the first
// level where they part its quotient is clearly larger.
func (m *model) precedes(now taskqueue.Instant, a, b taskqueue.Account) bool {
	as, bs := above(a), above(b)
	for i := range min(len(as), len(bs)) {
		if as[i] == bs[i] {
			continue
		}
		return m.key(now, as[i]) > m.key(now, bs[i])*(1+1e-9)
	}
	return false
}

func (m *model) key(now taskqueue.Instant, name string) float64 {
	weight, _ := m.weightOf(name)
	used := m.used(now, name)
	switch {
	case weight == 0:
		return 0
	case used <= 1e-12:
		return math.Inf(1)
	}
	return float64(weight) / used
}

// tiedSomewhere reports whether groups in which two users are have keys that are nearly equal: then
// their children take turns together.
func (m *model) tiedSomewhere(now taskqueue.Instant, a, b taskqueue.Account) bool {
	as, bs := above(a), above(b)
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			x, y := m.key(now, as[i]), m.key(now, bs[i])
			return x == y || math.Abs(x-y) <= 1e-9*math.Abs(x)
		}
	}
	return true
}

func (m *model) mayHave(a taskqueue.Account, site string, more Amount) bool {
	if m.held {
		return false
	}
	for _, name := range above(a) {
		_, q := m.weightOf(name)
		all, here := m.takes(name, "").plus(more, 1), m.takes(name, site).plus(more, 1)
		stored := int64(0)
		for of := range m.users {
			if within(of, name) {
				stored += m.stored[of] + m.kept[of]
			}
		}
		if all.exceeds(q.Running, q.MilliCPUs) || here.exceeds(q.Sites[site].Running, q.Sites[site].MilliCPUs) ||
			q.Stored > 0 && stored >= q.Stored {
			return false
		}
	}
	return true
}

// The tree agrees with one that adds everything up anew, whatever happens in whichever order.
func TestTreeAgreesWithOneThatAddsUp(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(20) {
		if err := compareWithModel(first + i); err != nil {
			t.Fatalf("FAIRWAY_SEED=%d: %v", first+i, err)
		}
	}
}

// pair is a tree and its model.
type pair struct {
	rng   *rand.Rand
	now   taskqueue.Instant
	tree  *Tree[int]
	model *model
}

func compareWithModel(of uint64) error {
	p := &pair{rand.New(rand.NewPCG(of, 5)), 1, New[int](), &model{
		users: map[taskqueue.Account]bool{}, ready: map[taskqueue.Account]int{},
		stored: map[taskqueue.Account]int64{}, kept: map[taskqueue.Account]int64{},
	}}
	p.arrange(time.Duration(1+p.rng.IntN(100)) * time.Minute)
	for range 150 {
		p.now = p.now.After(time.Duration(p.rng.Int64N(int64(10 * time.Minute))))
		if p.rng.IntN(20) == 0 {
			p.now = p.now.After(200 * p.model.said.HalfLife) // a new epoch
		}
		p.act()
		if err := p.compare(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pair) arrange(halfLife time.Duration) {
	said := taskqueue.Shares{HalfLife: halfLife, Of: randomShares(p.rng, 2)}
	var limit func([]taskqueue.Share)
	limit = func(list []taskqueue.Share) {
		for i := range list {
			if p.rng.IntN(2) == 0 {
				list[i].Limits = taskqueue.Quota{
					Running: p.rng.IntN(5), MilliCPUs: p.rng.Int64N(5000), Stored: p.rng.Int64N(50),
					Sites: map[string]taskqueue.SiteQuota{"a": {Running: p.rng.IntN(4)}},
				}
			}
			limit(list[i].Of)
		}
	}
	limit(said.Of)
	p.tree.Arrange(p.now, said)
	p.model.said = said
}

func (p *pair) user() taskqueue.Account {
	a := taskqueue.Account{User: fmt.Sprint("s", p.rng.IntN(4))}
	for range p.rng.IntN(3) {
		a.Group = strings.TrimPrefix(a.Group+fmt.Sprint("/s", p.rng.IntN(4)), "/")
	}
	p.model.users[a] = true
	return a
}

// act does one thing to the tree and to its model.
func (p *pair) act() {
	m, a, site := p.model, p.user(), []string{"a", "b"}[p.rng.IntN(2)]
	n := p.tree.Of(a)
	switch p.rng.IntN(8) {
	case 0, 1:
		m.ready[a]++
		p.tree.GotReady(n, 1)
	case 2:
		if m.ready[a] > 0 {
			m.ready[a]--
			p.tree.GotReady(n, -1)
		}
	case 3, 4:
		g := gift{
			to: a, site: site, takes: Amount{1, 1000 * p.rng.Int64N(3)}, at: p.now, expected: 1000 * p.rng.Float64(),
		}
		m.given = append(m.given, g)
		p.tree.Charge(p.now, n, g.expected, g.site, g.takes)
	case 5, 6:
		if len(m.given) == 0 {
			return
		}
		g := &m.given[p.rng.IntN(len(m.given))]
		if g.ended == 0 {
			g.ended, g.used = p.now, 1000*p.rng.Float64()
			p.tree.Settle(p.now, p.tree.Of(g.to), g.at, g.expected, g.used, g.site, g.takes)
		}
	case 7:
		more, kept := p.rng.Int64N(10), p.rng.Int64N(10)
		m.stored[a] += more
		m.kept[a] = kept
		n.Store(more)
		n.SetKept(kept)
		m.held = p.rng.IntN(4) == 0
		p.tree.Hold(map[bool]string{true: "why"}[m.held])
	}
}

func (p *pair) compare() error {
	m := p.model
	var turns []taskqueue.Account
	for n := range p.tree.InOrder {
		turns = append(turns, n.Account())
	}
	seen := map[taskqueue.Account]bool{}
	for i, a := range turns {
		if seen[a] || m.ready[a] == 0 {
			return fmt.Errorf("%v has %d jobs and a turn, again: %v", a, m.ready[a], seen[a])
		}
		seen[a] = true
		for _, b := range turns[:i] {
			if m.precedes(p.now, a, b) && !m.tiedSomewhere(p.now, a, b) {
				return fmt.Errorf("%v takes its turn after %v", a, b)
			}
		}
	}
	for a := range m.users {
		if m.ready[a] > 0 && !seen[a] {
			return fmt.Errorf("%v has %d jobs and no turn", a, m.ready[a])
		}
		n := p.tree.Of(a)
		names := above(a)
		for x := range n.Up {
			if x.parent == nil {
				break
			}
			name := names[len(names)-1]
			names = names[:len(names)-1]
			if got, want := p.tree.used(p.now, x), m.used(p.now, name); math.Abs(got-want) > 1e-6*(1+want) {
				return fmt.Errorf("%s has used %g, and %g count", name, want, got)
			}
			if got, want := x.Takes(), m.takes(name, ""); got != want {
				return fmt.Errorf("%s has %v, and %v count", name, want, got)
			}
		}
		site, more := []string{"a", "b"}[p.rng.IntN(2)], Amount{1 + p.rng.IntN(2), p.rng.Int64N(2000)}
		if got, want := n.Beyond(site, more, "", Amount{}) == nil, m.mayHave(a, site, more); got != want {
			return fmt.Errorf("%v may have %v at %s: %v, and should be %v", a, more, site, got, want)
		}
	}
	return nil
}

// Who was kept from more is told once when there may be more.
func TestWhoWasKeptFromMoreIsTold(t *testing.T) {
	tree := New[int]()
	tree.Arrange(1, taskqueue.Shares{Of: []taskqueue.Share{
		{
			Name: "lab", Weight: 1, Limits: taskqueue.Quota{Running: 1},
			Of: []taskqueue.Share{{Name: "ann", User: true, Weight: 1}},
		},
	}})
	ann, one := tree.Of(taskqueue.Account{Group: "lab", User: "ann"}), Amount{Running: 1}
	tree.Charge(1, ann, 10, "a", one)
	if who := ann.Beyond("a", one, "", Amount{}); who == nil || who.Title() != "group lab" {
		t.Fatalf("the second is kept by %v", who)
	}
	if who := ann.Beyond("a", one, "a", one); who != nil {
		t.Errorf("one in place of another is kept by %s", who.Title())
	}
	if !tree.Settle(2, ann, 1, 10, 5, "a", one) || ann.GaveBack() {
		t.Error("it is not told once that there is room")
	}
	tree.Hold("no room")
	if ann.Beyond("a", one, "", Amount{}) != tree.root || !tree.Hold("") || tree.Hold("") {
		t.Error("a hold keeps nobody, or it is not told once that it is over")
	}
	if names := slices.Collect(maps.Values(tree.Ranks())); len(names) != 2 {
		t.Errorf("there are %d ranks", len(names))
	}
}
