package s3

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

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
