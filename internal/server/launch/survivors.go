package launch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/lib/sched"
)

// Survivors are the launches of local pilots that a server of this folder
// started and that are alive. Where no server runs it was cut short; they go on
// computing until their lease is over, for the next one.
func Survivors(workflow string) ([]string, error) {
	l, err := folder.Of(workflow)
	if err != nil {
		return nil, err
	}
	return batch.Alive(l.ID)
}

// EndSurvivors ends pilots that Survivors has found, with what they run, and
// waits until they are gone.
func EndSurvivors(workflow string) error {
	l, err := folder.Of(workflow)
	if err != nil {
		return err
	}
	local, err := batch.NewLocal(batch.LocalConfig{State: l.ID, LogDir: l.Pilots})
	if err != nil {
		return err
	}
	_, err = local.Status(context.Background())
	if ending := local.Close(); err == nil {
		err = ending
	}
	return err
}

// Left are pilots of sites that a server of a folder has started, and that may compute although none runs
// there.
type Left struct {
	// Alive are the launches that the batch systems have, by site.
	Alive map[string][]string
	// Unknown is why it is not known of the launches of a site.
	Unknown map[string]error

	folder  string // of the connection files
	systems map[string]batch.System
}

// Count is how many are known to be alive.
func (l *Left) Count() (n int) {
	for _, launches := range l.Alive {
		n += len(launches)
	}
	return n
}

// LeftAtSites asks the batch systems of the sites to which the servers of a folder have submitted pilots
// whose ends no server has seen. Where there are none it asks nobody. system opens that of a site.
func LeftAtSites(
	ctx context.Context, workflow string, system func(site string, l folder.Layout) (batch.System, error),
) (*Left, error) {
	l, err := folder.Of(workflow)
	if err != nil || l.ID == "" {
		return &Left{}, err
	}
	submitted := map[string][]string{}
	for _, file := range connectionsIn(l.Pilots) {
		if name := launchOf(file); !access.IsByHand(name) {
			submitted[loop.SiteOf(name)] = append(submitted[loop.SiteOf(name)], name)
		}
	}
	left := &Left{Alive: map[string][]string{}, Unknown: map[string]error{}, folder: l.Pilots,
		systems: map[string]batch.System{}}
	for site, launches := range submitted {
		s, err := system(site, l)
		if err == nil {
			left.systems[site] = s
			launches, err = aliveAt(ctx, s, launches)
		}
		switch {
		case err != nil:
			left.Unknown[site] = err
		case len(launches) > 0:
			left.Alive[site] = launches
		}
	}
	return left, nil
}

// aliveAt are those of some launches that a batch system has.
func aliveAt(ctx context.Context, s batch.System, launches []string) (alive []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, batch.CallTime)
	defer cancel()
	found, err := s.Status(ctx)
	for _, name := range launches {
		if status, ok := found[name]; ok && status.State != batch.Gone {
			alive = append(alive, name)
		}
	}
	return alive, err
}

const (
	// leftTime bounds the wait for batch systems to end the pilots that are left.
	leftTime  = time.Minute
	leftPause = 500 * time.Millisecond
)

// End has the batch systems end the pilots that are alive, and waits until they have. A pilot that its batch
// system does not reach learns from its connection file, which goes, that nobody wants it.
func (l *Left) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leftTime)
	defer cancel()
	for _, site := range slices.Sorted(maps.Keys(l.Alive)) {
		if err := l.endAt(ctx, site); err != nil {
			return fmt.Errorf("%s at the site %s: %w", strings.Join(l.Alive[site], ", "), site, err)
		}
	}
	return nil
}

func (l *Left) endAt(ctx context.Context, site string) error {
	system, names := l.systems[site], l.Alive[site]
	if err := system.Withdraw(ctx, names...); err != nil {
		return err
	}
	for _, name := range names {
		err := os.Remove(filepath.Join(l.folder, name+connectionEnding))
		if err := folder.IgnoreMissing(err); err != nil {
			return err
		}
	}
	for {
		alive, err := aliveAt(ctx, system, names)
		if err == nil && len(alive) == 0 {
			return nil
		}
		if ended := sched.Default().Sleep(ctx, leftPause); ended != nil {
			return errors.Join(errors.New("the batch system has taken the order, and still has them"), err)
		}
	}
}
