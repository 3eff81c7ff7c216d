package storage_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/storage"
)

// frozen is an element one of whose hosts never answers.
type frozen struct {
	storage.Element
	asked int
}

func (f *frozen) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	f.asked++
	if storage.HostOf(pfn) == "frozen" {
		<-ctx.Done()
		return storage.Info{}, ctx.Err()
	}
	return storage.Info{}, fs.ErrNotExist
}

func (f *frozen) Remove(ctx context.Context, pfn string) error {
	_, err := f.Stat(ctx, pfn)
	return err
}

func (f *frozen) List(ctx context.Context, pfn string) ([]storage.Entry, error) {
	_, err := f.Stat(ctx, pfn)
	return nil, err
}

// A server that does not answer is waited for once, is told of after a second, and is asked
// again after a while. Other servers are asked meanwhile.
func TestAFrozenServerIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		element := new(frozen)
		var slow []string
		p := storage.Prompt(element, 20*time.Second, func(host string, _ error) { slow = append(slow, host) })
		began := time.Now()
		_, err := p.Stat(t.Context(), "s3://frozen/a")
		var away *storage.AwayError
		if !errors.As(err, &away) || !storage.Temporary(err) || time.Since(began) != 20*time.Second {
			t.Fatal(err, time.Since(began))
		}
		for range 3 {
			_, stat := p.Stat(t.Context(), "s3://frozen/b")
			_, list := p.List(t.Context(), "s3://frozen/")
			if remove := p.Remove(t.Context(), "s3://frozen/b"); !errors.As(stat, &away) || !errors.As(list, &away) ||
				!errors.As(remove, &away) {
				t.Error(stat, list, remove)
			}
		}
		if _, err := p.Stat(t.Context(), "s3://other/a"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		synctest.Wait()
		if element.asked != 2 || time.Since(began) != 20*time.Second || !slices.Equal(slow, []string{"s3://frozen"}) {
			t.Error(element.asked, time.Since(began), slow)
		}
		<-time.After(21 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := p.Stat(ctx, "s3://frozen/a"); !errors.As(err, &away) || element.asked != 3 {
			t.Error(err, element.asked)
		}
		if _, err := p.List(t.Context(), "s3://frozen/"); !errors.As(err, &away) || element.asked != 3 {
			t.Error("what was cut short after a second is asked at once again:", err)
		}
	})
}

// interrupted ends a context as soon as it has an answer.
type interrupted struct {
	storage.Element
	cancel func()
}

func (i *interrupted) Stat(context.Context, string) (storage.Info, error) {
	i.cancel()
	return storage.Info{}, nil
}

func (i *interrupted) List(ctx context.Context, _ string) ([]storage.Entry, error) {
	return nil, ctx.Err()
}

// What was not listed is not empty.
func TestAListThatIsInterruptedIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := storage.Prompt(&interrupted{cancel: cancel}, time.Minute, func(string, error) {})
	if entries, err := p.List(ctx, "s3://host/"); !errors.Is(err, context.Canceled) {
		t.Error(entries, err)
	}
}
