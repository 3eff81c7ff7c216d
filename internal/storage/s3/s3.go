// Package s3 has the storage element of object stores with the S3 protocol. A PFN
// is s3://BUCKET/KEY. Where they are, and with which keys, is taken from where the
// user keeps it for other tools: AWS_* in the environment, and ~/.aws.
//
// Guarantees beyond those of [storage.Element]: an object appears when it is
// complete, and only if there is none of that key (If-None-Match). Its CRC-32C is
// computed here, sent with it, and compared by the server. Of what is read, a checksum
// is compared that the server tells of the whole object (CRC-32C, CRC-32, CRC-64/NVME,
// SHA-1, SHA-256), or the ETag where it is an MD5 sum.
package s3

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"fairway/internal/legible"
	"fairway/internal/storage"
)

// partSize is how much of a large object is sent in one piece, and held in memory.
const partSize = 16 << 20

// Element is the element of the scheme s3.
type Element struct {
	config func() (Config, error)

	mu        sync.Mutex // guards the rest
	connected Config     // that client is for
	client    *minio.Core
}

var _ storage.Element = (*Element)(nil)

// New returns an element that looks up where its objects are, and with which keys, for each
// operation, so that renewed keys count.
func New(config func() (Config, error)) *Element { return &Element{config: config} }

func (e *Element) connection() (*minio.Core, error) {
	config, err := e.config()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client == nil || e.connected != config {
		client, err := config.connect()
		if err != nil {
			return nil, err
		}
		e.connected, e.client = config, client
	}
	return e.client, nil
}

// object is what a PFN names. The characters of a key stand for themselves.
type object struct {
	pfn, bucket, key string
	*minio.Core
}

func (e *Element) object(pfn string) (o object, err error) {
	_, rest, _ := strings.Cut(pfn, "://")
	o.pfn = pfn
	o.bucket, o.key, _ = strings.Cut(rest, "/")
	if o.bucket == "" || strings.ContainsAny(o.bucket, "@?#") {
		return o, fmt.Errorf("%s: write s3://BUCKET/KEY; the server and the keys stand in the environment or in ~/.aws",
			storage.Shown(pfn))
	}
	if err := storage.CheckName(o.key); err != nil {
		return o, err
	}
	o.Core, err = e.connection()
	return o, err
}

// failed is an error of the server as other elements have it.
func failed(pfn string, err error) error {
	if status, ok := errors.AsType[*storage.StatusError](err); ok {
		return &storage.StatusError{PFN: pfn, Status: status.Status, Text: status.Text}
	}
	if endless, ok := errors.AsType[*storage.ListingError](err); ok {
		return endless
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) || answer.StatusCode == 0 {
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err
		}
		switch text := err.Error(); { // minio-go has no types for these
		case strings.Contains(text, "Connection closed by foreign host"):
			err = fmt.Errorf("the server closed the connection: %w", io.ErrUnexpectedEOF)
		case strings.Contains(text, "checksum mismatch"):
			return &storage.ChecksumError{PFN: pfn, Kind: "checksum"}
		}
		return fmt.Errorf("%s: %w", pfn, err)
	}
	text := strings.TrimPrefix(answer.Code, fmt.Sprint(answer.StatusCode, " ")) // where the server names no code
	text = legible.Line(text, storage.MaxSaid)
	if denied := answer.StatusCode; denied == http.StatusForbidden || denied == http.StatusUnauthorized {
		text += " (keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the profile AWS_PROFILE of " +
			"~/.aws/credentials)"
	}
	status := &storage.StatusError{PFN: pfn, Status: answer.StatusCode, Text: text}
	if answer.Code == "NoSuchBucket" {
		status.Text = "NoSuchBucket: make the bucket, or correct its name"
	}
	return status
}

// Open is part of Element. Reading goes on where it was cut, if the object is the same.
func (e *Element) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	o, err := e.object(pfn)
	if err != nil {
		return nil, err
	}
	var options minio.GetObjectOptions
	options.Set("X-Amz-Checksum-Mode", "ENABLED") // options.Checksum would have it compared here, too
	body, info, err := o.part(ctx, options)
	if err != nil {
		return nil, err
	}
	return storage.Checked(storage.Resumed(ctx, info.Size, body, func(from int64) (io.ReadCloser, error) {
		var options minio.GetObjectOptions
		if err := errors.Join(options.SetMatchETag(info.ETag), options.SetRange(from, 0)); err != nil {
			return nil, err
		}
		rest, _, err := o.part(ctx, options)
		return rest, err
	}), checksumOf(info), pfn), nil
}

// MaxPresigned is how long a URL of [Element.URL] is good at most: S3 permits no more.
const MaxPresigned = 7 * 24 * time.Hour

// URL is by what a program reads an object that has no keys: for so long, at most
// MaxPresigned, and no longer than a session token of the user is good. Where the user has
// no keys either, it is as for anybody, and good for ever.
func (e *Element) URL(ctx context.Context, pfn string, lasts time.Duration) (string, error) {
	o, err := e.object(pfn)
	if err != nil {
		return "", err
	}
	config, err := e.config()
	if err != nil {
		return "", err
	}
	if config.AccessKey == "" {
		u := o.EndpointURL()
		u.Path = "/" + o.bucket + "/" + o.key
		if config.Endpoint == "" && !strings.Contains(o.bucket, ".") { // Amazon finds the region by the bucket
			u.Host, u.Path = o.bucket+"."+u.Host, "/"+o.key
		}
		return u.String(), nil
	}
	u, err := o.PresignedGetObject(ctx, o.bucket, o.key, min(lasts, MaxPresigned), nil)
	if err != nil {
		return "", failed(pfn, err)
	}
	return u.String(), nil
}

func (o object) part(ctx context.Context, options minio.GetObjectOptions) (io.ReadCloser, minio.ObjectInfo, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	body, info, _, err := o.GetObject(context.WithValue(ctx, objectKey{}, true), o.bucket, o.key, options)
	if err != nil {
		cancel(err)
		return nil, info, failed(o.pfn, err)
	}
	return storage.Steady(ctx, cancel, &received{body, o.pfn}, o.pfn), info, nil
}

// received is a body whose errors are as other elements have them.
type received struct {
	io.ReadCloser
	pfn string
}

func (r *received) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = failed(r.pfn, err)
	}
	return n, err
}

// md5ETag is an ETag that is the MD5 sum of an object: not one of several parts.
var md5ETag = regexp.MustCompile(`^[0-9a-f]{32}$`)

// checksumOf is the checksum of a whole object. With encryption by the server an
// ETag is none.
func checksumOf(info minio.ObjectInfo) storage.Checksum {
	for kind, told := range map[string]string{
		"crc32c": info.ChecksumCRC32C, "crc32": info.ChecksumCRC32, "crc64nvme": info.ChecksumCRC64NVME,
		"sha-1": info.ChecksumSHA1, "sha-256": info.ChecksumSHA256,
	} {
		value, err := base64.StdEncoding.DecodeString(told)
		sum := storage.Checksum{Kind: kind, Value: hex.EncodeToString(value)}
		if err == nil && len(value) == sum.Hash().Size() && info.ChecksumMode != "COMPOSITE" {
			return sum
		}
	}
	for name := range info.Metadata {
		if strings.HasPrefix(strings.ToLower(name), "x-amz-server-side-encryption") {
			return storage.Checksum{}
		}
	}
	if md5ETag.MatchString(info.ETag) {
		return storage.Checksum{Kind: "md5", Value: info.ETag}
	}
	return storage.Checksum{}
}

// Get is part of Element.
func (e *Element) Get(ctx context.Context, pfn, path string) (int64, error) {
	return storage.Fetch(ctx, e, pfn, path)
}

// Stat is part of Element.
func (e *Element) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	o, err := e.object(pfn)
	if err != nil {
		return storage.Info{}, err
	}
	info, err := o.StatObject(ctx, o.bucket, o.key, minio.StatObjectOptions{})
	if err != nil {
		return storage.Info{}, failed(pfn, err)
	}
	return storage.Info{Size: info.Size, ModTime: info.LastModified.Truncate(time.Second)}, nil
}

// Put is part of Element.
func (e *Element) Put(ctx context.Context, path, pfn string) error {
	file, info, err := storage.OpenForPut(path)
	if err != nil {
		return err
	}
	defer file.Close()
	o, err := e.object(pfn)
	if err != nil {
		return err
	}
	switch _, err := e.Stat(ctx, pfn); {
	case err == nil:
		return storage.SameAs(ctx, e, file, pfn)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	var options minio.PutObjectOptions
	options.SetMatchETagExcept("*")
	_, err = o.put(ctx, file, info.Size(), options)
	if errors.Is(err, fs.ErrExist) {
		return storage.SameAs(ctx, e, file, pfn)
	}
	return err
}

// Remove is part of Element.
func (e *Element) Remove(ctx context.Context, pfn string) error {
	o, err := e.object(pfn)
	if err != nil {
		return err
	}
	err = o.RemoveObject(ctx, o.bucket, o.key, minio.RemoveObjectOptions{})
	if err = orNil(err, pfn); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func orNil(err error, pfn string) error {
	if err == nil {
		return nil
	}
	return failed(pfn, err)
}
