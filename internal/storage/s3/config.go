package s3

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"fairway/internal/legible"
	"fairway/internal/storage"
)

// Time limits of one request. The transfer itself ends when it stalls
// (storage.StallTime), or with its context.
const (
	DialTimeout   = 10 * time.Second
	HeaderTimeout = storage.HeaderTime
)

const amazon = "https://s3.amazonaws.com"

// Config says where objects are and with which keys they are reached.
type Config struct {
	Endpoint             string // URL of the server; empty: Amazon
	Region               string // empty: the server is asked
	AccessKey, SecretKey string // empty: as anybody
	SessionToken         string
}

// String shows where, without keys.
func (c Config) String() string { return c.Endpoint + " " + c.Region }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// ConfigOfUser is what the tools of S3 take: AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION,
// AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL in the environment; and, of the profile
// AWS_PROFILE, what ~/.aws/credentials and ~/.aws/config have
// (AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name others).
func ConfigOfUser() (Config, error) {
	profile := cmp.Or(os.Getenv("AWS_PROFILE"), os.Getenv("AWS_DEFAULT_PROFILE"), "default")
	keys, err := section(cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), inHome("credentials")), profile)
	if err != nil {
		return Config{}, err
	}
	rest, err := section(cmp.Or(os.Getenv("AWS_CONFIG_FILE"), inHome("config")), profile)
	if err != nil {
		return Config{}, err
	}
	c := Config{
		Endpoint:  cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), rest["endpoint_url"], keys["endpoint_url"]),
		Region:    cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), rest["region"], keys["region"]),
		AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}
	for _, file := range []map[string]string{keys, rest} {
		if c.AccessKey == "" {
			c.AccessKey, c.SecretKey, c.SessionToken = file["aws_access_key_id"], file["aws_secret_access_key"],
				file["aws_session_token"]
		}
	}
	return c, nil
}

func inHome(name string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".aws", name)
}

// section reads what a file of ~/.aws has under [NAME] or [profile NAME]. A file
// that is not there has nothing.
func section(path, name string) (map[string]string, error) {
	found := map[string]string{}
	file, err := os.Open(path)
	if os.IsNotExist(err) || path == "" {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	inside := false
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if title, ok := strings.CutPrefix(line, "["); ok {
			title, _, _ = strings.Cut(title, "]")
			inside = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(title), "profile ")) == name
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok && inside && !strings.HasPrefix(line, "#") &&
			!strings.HasPrefix(line, ";") {
			found[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return found, lines.Err()
}

func (c Config) connect() (*minio.Core, error) {
	u, err := url.Parse(cmp.Or(c.Endpoint, amazon))
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" ||
		strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL: this must be http:// or https:// with a host and no more")
	}
	keys := credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	if c.AccessKey != "" {
		keys = credentials.NewStaticV4(c.AccessKey, c.SecretKey, c.SessionToken)
	}
	return minio.NewCore(u.Host, &minio.Options{
		Creds: keys, Secure: u.Scheme == "https", Region: c.Region,
		MaxRetries:      1, // storage.Retry does that
		TrailingHeaders: true,
		Transport: bounded{dated{&http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            storage.Dial(&net.Dialer{Timeout: DialTimeout}),
			TLSHandshakeTimeout:    DialTimeout,
			ResponseHeaderTimeout:  HeaderTimeout,
			MaxResponseHeaderBytes: maxReply,
			MaxIdleConnsPerHost:    storage.DefaultTransfers, // so that no transfer needs another connection than the last
			IdleConnTimeout:        storage.IdleTimeout,
			DisableCompression:     true,
		}}},
	})
}

// maxSkew is how far the clock of who signs a request may be from that of the server: so
// much S3 permits.
const maxSkew = 15 * time.Minute

// maxRefusal bounds what is read of the words of a refusal, in bytes.
const maxRefusal = 64 << 10

// dated says of a refused signature that it is for the clock of this machine, of which many a
// server says nothing. What the server says stands beside it. Where the server names another
// reason, or nothing was signed, the refusal stays as it is.
type dated struct{ http.RoundTripper }

func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusForbidden || r.Header.Get("Authorization") == "" {
		return answer, err
	}
	said, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusal)) // a part that came is passed on
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(said), answer.Body), answer.Body}
	var refusal struct{ Code, Message string }
	_ = xml.Unmarshal(said, &refusal) // no words at all come with HEAD
	ahead := time.Duration(0)
	if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		ahead = time.Since(at)
	}
	var why string
	switch side := "ahead of"; {
	case refusal.Code != "RequestTimeTooSkewed" && refusal.Code != "AccessDenied" && refusal.Code != "":
		return answer, nil
	case ahead.Abs() > maxSkew:
		if ahead < 0 {
			side = "behind"
		}
		why = fmt.Sprintf("the clock of this machine is %v %s that of the server", ahead.Abs().Round(time.Minute), side)
	case refusal.Code == "RequestTimeTooSkewed":
		why = "the clocks of this machine and of the server differ"
	default:
		return answer, nil
	}
	_ = answer.Body.Close()
	text := cmp.Or(legible.Line(strings.TrimSpace(refusal.Code+" "+refusal.Message), storage.MaxSaid),
		http.StatusText(answer.StatusCode))
	return nil, &storage.StatusError{
		Status: answer.StatusCode, Text: fmt.Sprintf("%s (%s: set it right, signatures are good for 15 minutes)", text, why),
	}
}
