package main

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"fairway/examples/mpi/mpi"
)

// Tags of messages. Those of Table 2 go to tags from firstWaiter on.
const (
	tagAsk = iota
	tagAnswer
	tagDone
	firstWaiter
)

const (
	messageSize = 8
	// pauseMean is that of the exponential pauses between messages.
	pauseMean = 2 * time.Millisecond
	// look is how often the client, which has nothing else to do, looks for an answer.
	look = 100 * time.Microsecond
)

// send sends the time to a tag, or 0 to say that it was the last message.
func send(b []byte, tag int, last bool) {
	at := time.Now().UnixNano()
	if last {
		at = 0
	}
	binary.LittleEndian.PutUint64(b, uint64(at))
	mpi.Send(b, 1, tag).Wait() // so short a message is sent at once
}

// meet waits for the other process, without taking a processor as MPI_Barrier does.
func meet() {
	for barrier := mpi.Barrier(); !barrier.Test(); {
		time.Sleep(look)
	}
}

// ask is process 0.
func ask(p plan) {
	out, in := mpi.NewBuffer(messageSize), mpi.NewBuffer(messageSize)
	for range len(p.computing) * len(ways) * p.rounds {
		meet()
		for end := time.Now().Add(p.each); time.Now().Before(end); {
			time.Sleep(pause())
			answer := mpi.Receive(in, 1, tagAnswer)
			send(out, tagAsk, false)
			for !answer.Test() {
				time.Sleep(look)
			}
		}
		send(out, tagAsk, true)
		meet()
	}
	for range p.rounds {
		for _, waiters := range p.waiters {
			for range waitingWays {
				meet()
				for done := mpi.Receive(in, 1, tagDone); !done.Test(); {
					time.Sleep(pause())
					send(out, firstWaiter+rand.IntN(waiters), false)
				}
				for k := range waiters {
					send(out, firstWaiter+k, true)
				}
				meet()
			}
		}
	}
}

func pause() time.Duration { return time.Duration(rand.ExpFloat64() * float64(pauseMean)) }
