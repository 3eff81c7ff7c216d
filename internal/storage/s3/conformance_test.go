package s3

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
	"fairway/sched"
)

var places atomic.Int64

func fixed(address string) func() (Config, error) {
	return func() (Config, error) {
		return Config{Endpoint: "http://" + address, Region: "us-east-1", AccessKey: storagetest.AccessKey, SecretKey: storagetest.SecretKey}, nil
	}
}

// atOnce tries again without a pause.
func atOnce(context.Context, time.Duration) error { return nil }

func element(address string) storage.Element {
	return storage.Retry(New(fixed(address)), storage.DefaultTries, storage.DefaultBackoff, atOnce)
}

func place(t *testing.T, address, buckets string) storagetest.Place {
	t.Helper()
	if err := os.MkdirAll(buckets+"/bucket", 0o777); err != nil {
		t.Fatal(err)
	}
	return storagetest.Place{Element: element(address), PFN: fmt.Sprintf("s3://bucket/%d", places.Add(1))}
}

func TestS3UnderFaults(t *testing.T) {
	address, buckets := storagetest.S3(t)
	storagetest.RunFaults(t, func(t *testing.T, proxy *storagetest.Proxy) storagetest.Faulty {
		direct := place(t, address, buckets)
		through := direct
		through.Element = element(proxy.Address)
		return storagetest.Faulty{Place: through, Direct: direct, Checked: true, GoesOn: true}
	}, address)
}

func TestFullS3(t *testing.T) {
	address, buckets := storagetest.FullS3(t)
	storagetest.Full(t, place(t, address, buckets))
}

func TestS3Conforms(t *testing.T) {
	address, buckets := storagetest.S3(t)
	if err := os.Mkdir(buckets+"/bucket", 0o777); err != nil {
		t.Fatal(err)
	}
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		// A server may refuse a conditional put by closing the connection while the
		// body is sent; the next try hears why.
		element := storage.Retry(New(fixed(address)), storage.DefaultTries, storage.DefaultBackoff, sched.Default().Sleep)
		return storagetest.Place{Element: element, PFN: fmt.Sprintf("s3://bucket/%d", places.Add(1))}
	})
}
