package transport

import (
	"testing"
	"time"
)

func TestAlarm(t *testing.T) {
	a, err := newAlarm()
	must(t, err)
	a.set(time.Hour)
	a.set(time.Nanosecond) // forgets the hour
	if !a.wait() {
		t.Fatal("the alarm is closed")
	}
	over := make(chan bool)
	go func() { over <- a.wait() }()
	a.close()
	if <-over {
		t.Fatal("an alarm that is closed went off")
	}
	a.set(time.Nanosecond) // does nothing
}
