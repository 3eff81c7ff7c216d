package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fairway/bench/measure"
	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
)

// fileAt is a folder of another file system than that of the files, where there is
// one: on the same, files are linked.
func fileAt(h *measure.Host) (testedFolder, error) {
	base := h.TempDir()
	if elsewhere, err := os.MkdirTemp("/dev/shm", "fairway-bench"); err == nil {
		h.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
		base = elsewhere
	}
	script := func(text string) func(from, to string, _ []string) []string {
		return func(from, to string, _ []string) []string { return []string{"sh", "-c", text, "sh", from, to} }
	}
	plain := peer{
		name: "cp", program: "cp",
		read: script(`cp "$1" "$2"`), readAll: script(`cp -r "$1/." "$2"`),
		write:    script(`mkdir -p "$(dirname "$2")" && cp "$1" "$2"`),
		writeAll: script(`mkdir -p "$2" && cp -r "$1/." "$2"`),
	}
	durable := plain // what Fairway stores is brought to disk
	durable.name = "cp and sync"
	durable.write = script(`mkdir -p "$(dirname "$2")" && cp "$1" "$2" && sync "$2" "$(dirname "$2")"`)
	durable.writeAll = script(`mkdir -p "$2" && cp -r "$1/." "$2" && sync "$2"/* "$2"`)
	return testedFolder{pfn: base, peers: []peer{plain, durable}}, nil
}

func webAt(h *measure.Host) (testedFolder, error) {
	address := storagetest.WebDAV(h)
	url := func(pfn string) string { return strings.Replace(pfn, "dav://", "http://", 1) }
	many := func(option string) func(from, to string, names []string) []string {
		return func(from, to string, names []string) []string {
			var config strings.Builder
			for _, name := range names {
				if option == "upload-file" {
					fmt.Fprintf(&config, "upload-file = %q\nurl = %q\n", from+"/"+name, url(to)+"/"+name)
				} else {
					fmt.Fprintf(&config, "url = %q\noutput = %q\n", url(from)+"/"+name, to+"/"+name)
				}
			}
			list := filepath.Join(h.TempDir(), "curl")
			measure.ExitOn(os.WriteFile(list, []byte(config.String()), 0o666))
			call := `curl -sSf --parallel --parallel-max 8 -K "$1"`
			if option == "upload-file" {
				call = `curl -sSf -X MKCOL "$2" && ` + call
			}
			return []string{"sh", "-c", call, "sh", list, url(to) + "/"}
		}
	}
	curl := peer{
		name: "curl", program: "curl",
		write: func(from, to string, _ []string) []string {
			return []string{"sh", "-c", `curl -sSf -X MKCOL "$3" && curl -sSf -T "$1" "$2"`, "sh", from, url(to), folderURL(url(to))}
		},
		read:     func(from, to string, _ []string) []string { return []string{"curl", "-sSf", "-o", to, url(from)} },
		writeAll: many("upload-file"), readAll: many("output"),
	}
	// rclone has more to do than curl: it asks what is there.
	copied := func(what string) func(from, to string, _ []string) []string {
		remote := func(pfn string) string {
			return strings.Replace(pfn, "dav://"+address, ":webdav,url='http://"+address+"':", 1)
		}
		return func(from, to string, _ []string) []string {
			return []string{"rclone", what, "--config", "/dev/null", "--transfers", fmt.Sprint(storage.DefaultTransfers),
				remote(from), remote(to)}
		}
	}
	rclone := peer{name: "rclone", program: "rclone", read: copied("copyto"), write: copied("copyto"),
		readAll: copied("copy"), writeAll: copied("copy")}
	return testedFolder{pfn: "dav://" + address, peers: []peer{curl, rclone}}, nil
}

// folderURL is the URL of the folder of a file.
func folderURL(url string) string { return url[:strings.LastIndexByte(url, '/')+1] }

func rootAt(h *measure.Host) (testedFolder, error) {
	address, _, _ := storagetest.XRootD(h)
	one := func(from, to string, _ []string) []string {
		return []string{"xrdcp", "--nopbar", "--silent", "--path", from, to}
	}
	writeAll := func(from, to string, _ []string) []string {
		call := `xrdfs "$1" mkdir -p "$2" && xrdcp --nopbar --silent --parallel 4 "$3"/* "$1/$2/"`
		return []string{"sh", "-c", call, "sh", "root://" + address, strings.TrimPrefix(to, "root://"+address+"/"), from}
	}
	readAll := func(from, to string, _ []string) []string {
		return []string{"xrdcp", "--nopbar", "--silent", "--parallel", "4", "-r", from, to}
	}
	xrdcp := peer{name: "xrdcp", program: "xrdcp", read: one, write: one, readAll: readAll, writeAll: writeAll}
	return testedFolder{pfn: "root://" + address + "//store", peers: []peer{xrdcp}}, nil
}

func s3At(h *measure.Host) (testedFolder, error) {
	address, buckets := storagetest.S3(h)
	if err := os.Mkdir(filepath.Join(buckets, "bucket"), 0o777); err != nil {
		return testedFolder{}, err
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": "http://" + address, "S3_ENDPOINT_URL": "http://" + address, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": storagetest.AccessKey, "AWS_SECRET_ACCESS_KEY": storagetest.SecretKey,
	} {
		if err := os.Setenv(name, value); err != nil {
			return testedFolder{}, err
		}
	}
	s5cmd := filepath.Join(os.Getenv("FAIRWAY_BIN"), "s5cmd")
	one := func(from, to string, _ []string) []string { return []string{s5cmd, "cp", from, to} }
	return testedFolder{pfn: "s3://bucket", peers: []peer{{
		name: "s5cmd", program: s5cmd, read: one, write: one,
		writeAll: func(from, to string, _ []string) []string { return []string{s5cmd, "cp", from + "/", to + "/"} },
		readAll:  func(from, to string, _ []string) []string { return []string{s5cmd, "cp", from + "/*", to + "/"} },
	}}}, nil
}
