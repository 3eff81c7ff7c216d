package token

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/lib/seed"
)

// TestTokensAreTakenOnce has two goroutines hand tokens to and fro in each of the ways to wait, with and
// without somebody who waits already, and what one wrote before it gave a token the other sees.
func TestTokensAreTakenOnce(t *testing.T) {
	const turns = 20_000
	var tokens [2]Token
	written := 0
	play := func(me int, ways []byte) {
		for k, way := range ways {
			if written != 2*k+me {
				t.Errorf("task %d sees %d in turn %d", me, written, k)
			}
			written++
			tokens[me].Expect()
			tokens[1-me].Give()
			if k+1 == len(ways) && me == 1 {
				return // nobody gives any more
			}
			take(&tokens[me], way)
		}
	}
	rng := seed.Source(t)
	var ways [2][]byte
	for me := range ways {
		for range turns {
			ways[me] = append(ways[me], byte(rng.IntN(5)))
		}
	}
	done := make(chan struct{})
	tokens[1].Expect()
	go func() {
		defer close(done)
		tokens[1].Take()
		play(1, ways[1])
	}()
	tokens[0].Expect()
	play(0, ways[0])
	<-done
	for me := range tokens {
		if tokens[me].Given() {
			t.Errorf("task %d has a token left", me)
		}
	}
}

func take(k *Token, way byte) {
	switch way {
	case 0:
		k.Take()
	case 1:
		for !k.TryTake() {
			runtime.Gosched()
		}
	case 2:
		<-k.Channel()
		k.Taken()
	case 3: // as when it was to wait for something else, too, that came first
		k.Channel()
		<-k.Channel()
		k.Taken()
	case 4:
		runtime.Gosched() // it may be there already
		k.Take()
	}
}

// TestTokenThatIsNotGiven has one given up, and the next be taken.
func TestTokenThatIsNotGiven(t *testing.T) {
	var k Token
	for range 3 {
		k.Expect()
		select {
		case <-k.Channel():
			t.Fatal("nobody has given it")
		default:
		}
		k.Taken()
		if k.TryTake() || k.Given() {
			t.Fatal("there is none")
		}
		k.Expect()
		k.Give()
		if !k.Given() {
			t.Fatal("it was given")
		}
		k.Take()
	}
}

// TestWaitIsDurable has synctest see that a goroutine waits, and a dump of goroutines say so.
func TestWaitIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k Token
		k.Expect()
		var taken bool
		go func() {
			k.Take()
			taken = true
		}()
		synctest.Wait()
		if taken {
			t.Fatal("nobody has given it")
		}
		dump := make([]byte, 1<<16)
		dump = dump[:runtime.Stack(dump, true)]
		if s := string(dump); !strings.Contains(s, "[sync.Cond.Wait") && !strings.Contains(s, "[chan receive") {
			t.Errorf("the dump does not say that a goroutine waits:\n%s", s)
		}
		<-time.After(time.Hour) // which passes at once
		k.Give()
		synctest.Wait()
		if !taken {
			t.Fatal("it was given")
		}
	})
}

// TestTakersSurviveCollections has many goroutines wait while garbage is collected, and stacks move.
func TestTakersSurviveCollections(t *testing.T) {
	const takers = 200
	tokens := make([]*Token, takers)
	woken := make(chan int, takers)
	for i := range tokens {
		k := new(Token)
		tokens[i] = k
		k.Expect()
		go func() {
			deep(i%50, k.Take)
			woken <- i
		}()
	}
	for i, k := range tokens {
		if i%20 == 0 {
			runtime.GC()
		}
		k.Give()
		tokens[i] = nil
	}
	seen := make(map[int]bool)
	for range takers {
		seen[<-woken] = true
	}
	if len(seen) != takers {
		t.Errorf("%d of %d woke", len(seen), takers)
	}
}

// deep calls f with a stack of some size.
func deep(n int, f func()) byte {
	var frame [256]byte
	if n == 0 {
		f()
		return frame[0]
	}
	return deep(n-1, f) + frame[n]
}
