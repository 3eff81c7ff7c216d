package orwl

import (
	"context"
	"errors"
	"testing"
)

// routes are the ways in which a process can reach its own locations x and y: itself, and
// two connections.
func routes(t *testing.T) [3][2]Resource {
	x, y := newLocation(t, "x", 8), newLocation(t, "y", 8)
	s, p := served(t, "tcp", x, y)
	q := dialled(t, s, listen(t, "tcp"), new(Dialer))
	return [3][2]Resource{{x, y}, {mirror(t, p, "x"), mirror(t, p, "y")}, {mirror(t, q, "x"), mirror(t, q, "y")}}
}

func insertBoth(ctx context.Context, r []Resource) error {
	hs := Handles{new(Handle), new(Handle)}
	if err := Insert(ctx, hs[0].Writing(r[0]), hs[1].Writing(r[1])); err != nil {
		return err
	}
	if err := hs.Acquire(ctx); err != nil {
		return err
	}
	return hs.Release()
}

// Tasks that reach two locations of one owner each by another connection, crosswise,
// do not wait for each other's insertions for ever.
func TestInsertByTwoConnections(t *testing.T) {
	by := routes(t)
	var ends []chan error
	for _, r := range [][]Resource{
		{by[1][0], by[2][1]}, {by[1][1], by[2][0]}, {by[0][1], by[1][0]}, {by[1][1], by[0][0]}, by[2][:],
	} {
		end := make(chan error, 1)
		ends = append(ends, end)
		go func() {
			for range rounds(100) {
				if err := insertBoth(background, r); err != nil {
					end <- err
					return
				}
			}
			end <- nil
		}()
	}
	for _, end := range ends {
		must(t, <-end)
	}
}

// An insertion that names a location twice, by different ways, would wait for its own
// first part.
func TestInsertNamesALocationInTwoWays(t *testing.T) {
	by := routes(t)
	for i := range by {
		for j := range i {
			var h, g Handle
			if err := Insert(background, h.Reading(by[i][0]), g.Reading(by[j][0])); !errors.Is(err, ErrTwoWays) {
				t.Fatal(err)
			}
		}
	}
	if n := by[0][0].(*Location).Waiting(); n != 0 {
		t.Fatalf("%d requests are left", n)
	}
}
