package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	"fairway/internal/storage"
)

var _ storage.Conditional = (*Element)(nil)

// Look is part of Conditional. The mark is the ETag, and labels are metadata of the
// object, with names in lower case.
func (e *Element) Look(ctx context.Context, pfn string) (mark string, labels map[string]string, err error) {
	o, err := e.object(pfn)
	if err != nil {
		return "", nil, err
	}
	info, err := o.StatObject(ctx, o.bucket, o.key, minio.StatObjectOptions{})
	if err != nil {
		return "", nil, failed(pfn, err)
	}
	labels = make(map[string]string, len(info.UserMetadata))
	for name, value := range info.UserMetadata {
		labels[strings.ToLower(name)] = value
	}
	return info.ETag, labels, nil
}

// Replace is part of Conditional.
func (e *Element) Replace(ctx context.Context, path, pfn, mark string, labels map[string]string) (string, error) {
	o, err := e.object(pfn)
	if err != nil {
		return "", err
	}
	file, info, err := storage.OpenForPut(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	options := minio.PutObjectOptions{UserMetadata: labels}
	if mark == "" {
		options.SetMatchETagExcept("*")
	} else {
		options.SetMatchETag(mark)
	}
	return o.put(ctx, file, info.Size(), options)
}

func (o object) put(
	ctx context.Context, file io.ReaderAt, size int64, options minio.PutObjectOptions,
) (mark string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options.PartSize, options.Checksum, options.DisableContentSha256 = partSize, minio.ChecksumFullObjectCRC32C, true
	body := storage.Watched(ctx, cancel, io.NewSectionReader(file, 0, size), o.pfn)
	defer body.Close()
	sent, err := o.Client.PutObject(ctx, o.bucket, o.key, body, size, options)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return "", cause
	}
	if err != nil {
		return "", failed(o.pfn, err)
	}
	return sent.ETag, nil
}

// CheckConditions makes sure, in a folder, that the server heeds the condition of
// Replace: one that does not would replace whatever stands there. It writes a file
// with nothing in it under the name that is given, and removes it.
func (e *Element) CheckConditions(ctx context.Context, pfn string) error {
	o, err := e.object(pfn)
	if err != nil {
		return err
	}
	for _, mark := range []string{"", "0123456789abcdef0123456789abcdef"} {
		var options minio.PutObjectOptions
		if mark == "" {
			options.SetMatchETagExcept("*")
		} else {
			options.SetMatchETag(mark)
		}
		for range 2 {
			if _, err = o.put(ctx, strings.NewReader(""), 0, options); err != nil {
				break
			}
		}
		var answer *storage.StatusError
		switch {
		case err == nil:
			return errors.Join(fmt.Errorf("%s: this server writes whatever the condition says, so one run could undo what "+
				"another has published: use a folder, WebDAV or XRootD", storage.Shown(pfn)), e.Remove(ctx, pfn))
		case !errors.Is(err, fs.ErrExist) && !(errors.As(err, &answer) && answer.Status == http.StatusConflict):
			return err
		}
	}
	return e.Remove(ctx, pfn)
}
