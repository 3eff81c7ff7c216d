package container

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// member is one of an archive; a name that ends in '/' is a folder.
type member struct {
	name, content string
	kind          byte
	link          string
}

func archived(t testing.TB, members ...member) []byte {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, m := range members {
		header := &tar.Header{Name: m.name, Typeflag: m.kind, Linkname: m.link, Mode: 0o4755, Size: int64(len(m.content))}
		if m.kind == 0 {
			if header.Typeflag = tar.TypeReg; strings.HasSuffix(m.name, "/") {
				header.Typeflag = tar.TypeDir
			}
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var text bytes.Buffer
	w := gzip.NewWriter(&text)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// layout is an OCI image of layers.
func layout(t testing.TB, layers ...[]byte) []byte {
	t.Helper()
	text := func(value any) string {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	type object = map[string]any
	members := []member{{name: "oci-layout", content: "{}"}}
	var named []object
	for i, l := range layers {
		digest := "sha256:layer" + string(rune('0'+i))
		members = append(members, member{name: "blobs/" + strings.Replace(digest, ":", "/", 1), content: string(l)})
		named = append(named, object{"digest": digest})
	}
	manifest := text(object{"config": object{"digest": "sha256:config"}, "layers": named})
	other := object{"digest": "sha256:none", "platform": object{"os": "linux", "architecture": "s390"}}
	return archived(t, append(members,
		member{name: "blobs/sha256/config", content: `{"config": {"Env": ["PATH=/opt/bin:/bin", "A=b"]}}`},
		member{name: "blobs/sha256/manifest", content: manifest},
		member{
			name: "blobs/sha256/nested", content: text(object{"manifests": []object{other, {"digest": "sha256:manifest"}}}),
		},
		member{name: "index.json", content: text(object{"manifests": []object{{"digest": "sha256:nested"}}})})...)
}

func unpacked(t *testing.T, image []byte) (folder string, config Config, err error) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "root")
	path := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(path, image, 0o644)); err != nil {
		t.Fatal(err)
	}
	config, err = Unpack(t.Context(), path, folder)
	return folder, config, err
}

func TestLayers(t *testing.T) {
	lower := archived(t, member{name: "./"}, member{name: "usr/"}, member{name: "usr/lib/"},
		member{name: "usr/lib/a", content: "a"},
		member{name: "lib", kind: tar.TypeSymlink, link: "/usr/lib"},
		member{name: "old/"}, member{name: "old/x", content: "x"},
		member{name: "gone", content: "g"}, member{name: "folder/"}, member{name: "folder/y", content: "y"},
		member{name: "dev/null", kind: tar.TypeChar})
	upper := archived(t, member{name: "lib/b", content: "b"}, member{name: "old/new", content: "n"},
		member{name: "old/.wh..wh..opq"}, member{name: ".wh.gone"}, member{name: "folder", content: "now a file"},
		member{name: "usr/lib/hard", kind: tar.TypeLink, link: "lib/a"})
	folder, config, err := unpacked(t, layout(t, lower, zipped(t, upper)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"usr/lib/a": "a", "usr/lib/b": "b", "usr/lib/hard": "a", "old/new": "n", "folder": "now a file",
	} {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"old/x", "gone", "dev/null"} {
		if _, err := os.Lstat(filepath.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(folder, "usr/lib/a")); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if !slices.Equal(config.Environment, []string{"PATH=/opt/bin:/bin", "A=b"}) {
		t.Errorf("environment %q", config.Environment)
	}
}

// No name and no link leads out of the folder.
func TestImagesThatWantOut(t *testing.T) {
	outside := t.TempDir()
	for name, members := range map[string][]member{
		"parent":   {{name: "../../escaped", content: "x"}},
		"absolute": {{name: "/escaped", content: "x"}},
		"link":     {{name: "l", kind: tar.TypeSymlink, link: outside}, {name: "l/escaped", content: "x"}},
		"up": {
			{name: "a/"}, {name: "a/l", kind: tar.TypeSymlink, link: "../../../.."}, {name: "a/l/escaped", content: "x"},
		},
		"hard":      {{name: "h", kind: tar.TypeLink, link: "../../../../etc/passwd"}},
		"whiteout":  {{name: "l", kind: tar.TypeSymlink, link: outside}, {name: "l/.wh..wh..opq"}},
		"circle":    {{name: "l", kind: tar.TypeSymlink, link: "l"}, {name: "l/x", content: "x"}},
		"mount":     {{name: "etc", kind: tar.TypeSymlink, link: outside}},
		"whiteouts": {{name: "l", kind: tar.TypeSymlink, link: outside}, {name: "l/.wh.kept"}},
	} {
		if err := os.WriteFile(filepath.Join(outside, "kept"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		folder, _, err := unpacked(t, layout(t, archived(t, members...)))
		left, readErr := os.ReadDir(outside)
		if readErr != nil || len(left) != 1 {
			t.Errorf("%s: outside is %v, %v", name, left, readErr)
		}
		above, readErr := os.ReadDir(filepath.Dir(folder))
		if readErr != nil || len(above) != 1 {
			t.Errorf("%s: beside the folder is %v, %v (%v)", name, above, readErr, err)
		}
	}
}

func TestWhatIsNoImage(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty": nil, "text": []byte(strings.Repeat("no image\n", 100)),
		"sif without a system": append(append(make([]byte, 32), "SIF_MAGIC\x00"...), make([]byte, 200)...),
		"no layer": archived(t,
			member{name: "index.json", content: `{"config": {"digest": "sha256:c"}, "layers": []}`}),
		"deep": archived(t,
			member{name: "index.json", content: `{"manifests": [{"digest": "x:y"}]}`}, member{name: "blobs/x/y", content: `{"manifests": [{"digest": "x:y"}]}`}),
		"two": archived(t, member{name: "manifest.json", content: `[{}, {}]`}),
	} {
		if _, _, err := unpacked(t, data); err == nil {
			t.Errorf("%s was unpacked", name)
		}
	}
}

// docker save names a layer twice, once as a link.
func TestDockerArchive(t *testing.T) {
	folder, _, err := unpacked(t, archived(t,
		member{name: "a/layer.tar", content: string(archived(t, member{name: "x", content: "x"}))},
		member{name: "b/layer.tar", kind: tar.TypeSymlink, link: "../a/layer.tar"},
		member{name: "c.json", content: `{}`},
		member{name: "manifest.json", content: `[{"Config": "c.json", "Layers": ["b/layer.tar"]}]`}))
	if got, readErr := os.ReadFile(filepath.Join(folder, "x")); err != nil || string(got) != "x" {
		t.Errorf("%q, %v, %v", got, err, readErr)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(archived(f, member{name: "a/b", content: "x"}, member{name: "l", kind: tar.TypeSymlink, link: "a"}))
	f.Add(layout(f, archived(f, member{name: "a", content: "x"})))
	f.Fuzz(func(t *testing.T, data []byte) {
		folder, _, _ := unpacked(t, data)
		if beside, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(beside) != 1 {
			t.Errorf("beside the folder is %v, %v", beside, err)
		}
	})
}

func TestCalls(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755), os.Symlink("usr/bin", filepath.Join(root, "bin")),
		os.Mkdir(filepath.Join(root, "data"), 0o755), os.Mkdir(filepath.Join(root, "srv"), 0o755),
	); err != nil {
		t.Fatal(err)
	}
	call := Call{Root: root, Dir: "/data/s",
		Writable: []string{"/data/s"}, Readable: []string{"/etc/hostname"}, Argv: []string{"x", "y"},
	}
	for runtime, want := range map[string]string{
		"apptainer": "apptainer --quiet exec --no-home --pwd /data/s " +
			"--bind /etc/hostname:/etc/hostname:ro --bind /data/s ROOT x y",
		"bubblewrap": "bwrap --symlink usr/bin /bin --dir /srv --ro-bind ROOT/usr /usr --dev-bind /dev /dev " +
			"--bind /proc /proc --ro-bind-try /sys /sys --bind /tmp /tmp --ro-bind /etc/hostname /etc/hostname " +
			"--bind /data/s /data/s " +
			"--chdir /data/s -- x y",
		"podman": "podman run --rm --read-only --network=host --ipc=host --pid=host --cgroups=disabled " +
			"--env-host --entrypoint= --volume=/tmp:/tmp --workdir=/data/s --volume=/etc/hostname:/etc/hostname:ro " +
			"--volume=/data/s:/data/s --rootfs ROOT x y",
	} {
		program, argv, err := call.Command(runtime)
		if got := strings.ReplaceAll(strings.Join(argv, " "), root, "ROOT"); err != nil || got != want || program != argv[0] {
			t.Errorf("%s: %v\ngot  %s\nwant %s", runtime, err, got, want)
		}
	}
	if _, _, err := call.Command("runc"); err == nil {
		t.Error("an unknown runtime was called")
	}
}
