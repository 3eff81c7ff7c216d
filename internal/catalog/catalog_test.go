package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const samples = "../../../shared/data/catalog/"

func sample(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(samples + name)
	if err != nil {
		t.Skip("the samples of real sites are not here:", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func check(t *testing.T, c *Catalog, protocol, lfn, want string) {
	t.Helper()
	got, err := c.PFN(protocol, lfn)
	if got != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrNoRule) {
		t.Errorf("%s %s: got %q, %v, want %q", protocol, lfn, got, err, want)
	}
}

func TestFNAL(t *testing.T) {
	c, err := ReadXML(sample(t, "T1_US_FNAL-storage.xml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Protocols(); !slices.Equal(got, []string{"direct", "dcap", "srm", "srmv2"}) {
		t.Error(got)
	}
	check(t, c, "direct", "/store/data/f.root", "/pnfs/fs/usr/cms/WAX/11/store/data/f.root")
	check(t, c, "dcap", "/store/data/f1.root",
		"dcap://cmsdca.fnal.gov:24125/pnfs/fnal.gov/usr/cms/WAX/11/store/data/f1.root")
	check(t, c, "dcap", "//store/data/f2.root",
		"dcap://cmsdca.fnal.gov:24136/pnfs/fnal.gov/usr/cms/WAX/11/store/data/f2.root")
	check(t, c, "srmv2", "/store/x", "srm://cmssrm.fnal.gov:8443/srm/managerv2?SFN=/11/store/x")
	check(t, c, "direct", "/store/PhEDEx_LoadTest07/LoadTest07_FNAL_A_B_C",
		"/pnfs/fs/usr/cms/WAX/11/store/PhEDEx_LoadTest07/LoadTest07_Prod_FNAL/LoadTest07_FNAL_A")
	check(t, c, "direct", "/elsewhere/x", "")
	check(t, c, "gsiftp", "/store/x", "")
}

func TestCERNBOX(t *testing.T) {
	c, err := ReadXML(sample(t, "T2_CH_CERNBOX-storage.xml"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, c, "srmv2", "/store/user/adoe/f.root", "root://eosuser.cern.ch/eos/user/a/adoe/f.root")
}

func TestDESY(t *testing.T) {
	c, err := ReadJSON(sample(t, "T2_DE_DESY-storage.json"), "T2_DE_DESY", "DESY_dCache")
	if err != nil {
		t.Fatal(err)
	}
	check(t, c, "pnfs", "/store/temp/x", "/pnfs/desy.de/cms/tier2/temp/x")
	check(t, c, "dcap", "/store/unmerged/x", "dcap://dcache-cms-dcap.desy.de/pnfs/desy.de/cms/tier2/unmerged/x")
	check(t, c, "XRootD", "/store/x", "root://dcache-cms-xrootd.desy.de:1094//store/x")
	if _, err := ReadJSON(sample(t, "T2_DE_DESY-storage.json"), "T2_DE_DESY", "tape"); err == nil {
		t.Error("a volume was found that is not there")
	}
}

func TestPrefix(t *testing.T) {
	c, err := ReadJSON(strings.NewReader(`[{"site": "S", "volume": "V", "protocols": [{"protocol": "p", "prefix": "davs://h/$1/"}]}]`), "", "")
	if err != nil {
		t.Fatal(err)
	}
	check(t, c, "p", "/store/x", "davs://h/$1/store/x")
}

func TestChains(t *testing.T) {
	c, err := ReadXML(strings.NewReader(`<storage-mapping>
		<lfn-to-pfn protocol="a" path-match="/+(.*)" result="A/$1" chain="b"/>
		<lfn-to-pfn protocol="b" path-match="/+(.*)" result="/B/$1" chain="c"/>
		<lfn-to-pfn protocol="c" path-match="/+x(.*)" result="/C$1$2$"/>
		<lfn-to-pfn protocol="circle" path-match="(.*)" result="$1" chain="circle"/>
	</storage-mapping>`))
	if err != nil {
		t.Fatal(err)
	}
	check(t, c, "a", "/x1", "A/B/C1$2$")
	check(t, c, "a", "/y", "")
	check(t, c, "circle", "/x", "")
}

func TestErrorsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"<storage-mapping>\n\n<lfn-to-pfn protocol=\"a\" path-match=\"(\" result=\"\"/></storage-mapping>": "line 3: pattern \"(\"",
		"<storage-mapping>\n<lfn-to-pfn/></storage-mapping>":                                               "line 2: lfn-to-pfn needs",
		"<storage-mapping>": "unexpected EOF",
		"":                  "EOF",
	} {
		if _, err := ReadXML(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ReadXML(strings.NewReader(strings.Repeat(" ", MaxBytes+1))); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	for _, text := range []string{`{`, `[]`, `[{"protocols": [{"protocol": "p"}]}]`, `[{"protocols": [{"protocol": "p", "rules": [{"lfn": "("}]}]}]`} {
		if _, err := ReadJSON(strings.NewReader(text), "", ""); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func TestReadFile(t *testing.T) {
	xml, err := ReadFile(sample(t, "T2_CH_CERNBOX-storage.xml").Name(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	check(t, xml, "srmv2", "/store/user/adoe/f.root", "root://eosuser.cern.ch/eos/user/a/adoe/f.root")
	json, err := ReadFile(sample(t, "T2_DE_DESY-storage.json").Name(), "T2_DE_DESY", "DESY_dCache")
	if err != nil {
		t.Fatal(err)
	}
	check(t, json, "pnfs", "/store/temp/x", "/pnfs/desy.de/cms/tier2/temp/x")
	if _, err := ReadFile(samples+"T2_DE_DESY-storage.json", "nowhere", ""); err == nil ||
		!strings.HasPrefix(err.Error(), samples) {
		t.Error(err)
	}
}

func TestCachedFilesComeFirst(t *testing.T) {
	var b bytes.Buffer
	err := Write(&b, []Entry{{"a", "file:/cache/a"}}, []Entry{{"a", "file:/se/a"}, {"b", "file:/se/b"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadXML(&b)
	if err != nil {
		t.Fatal(err)
	}
	check(t, c, Protocol, "a", "file:/cache/a")
	check(t, c, Protocol, "//b", "file:/se/b")
	check(t, c, Protocol, "c", "")
}

// Whatever the names are, a program that reads the catalog gets them back.
func TestWrittenNamesAreReadBack(t *testing.T) {
	name := rapid.StringMatching(`[a-z/.*+?(){}\[\]^$|\\&<>"'%é 0-9]{1,20}`)
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{"a" + name.Draw(t, "lfn"), "file:/" + name.Draw(t, "pfn")}
		var b bytes.Buffer
		if err := Write(&b, nil, []Entry{e}); err != nil {
			t.Fatal(err)
		}
		c, err := ReadXML(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.PFN(Protocol, e.LFN); got != e.PFN {
			t.Fatalf("%q became %q: %v", e.PFN, got, err)
		}
	})
}

// Names of real sites come back from what the sites make of them, by every protocol
// whose rules forget nothing; what comes back has the same physical name in any case.
func TestPhysicalNamesAreTranslatedBack(t *testing.T) {
	read := func(c *Catalog, err error) *Catalog {
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, c := range map[string]*Catalog{
		"FNAL":    read(ReadXML(sample(t, "T1_US_FNAL-storage.xml"))),
		"CERNBOX": read(ReadXML(sample(t, "T2_CH_CERNBOX-storage.xml"))),
		"DESY":    read(ReadJSON(sample(t, "T2_DE_DESY-storage.json"), "T2_DE_DESY", "DESY_dCache")),
	} {
		t.Run(name, func(t *testing.T) {
			element := rapid.StringMatching(`[a-zA-Z0-9_.é$-]{1,8}`)
			back := 0
			rapid.Check(t, func(t *rapid.T) {
				lfn := "/store/" +
					rapid.SampledFrom([]string{"data/", "unmerged/", "temp/", "user/adoe/", "PhEDEx_LoadTest07/"}).Draw(t, "tier") +
					element.Draw(t, "folder") + "/" + element.Draw(t, "file") +
					rapid.SampledFrom([]string{".root", "1.root", "A.root", ""}).Draw(t, "end")
				for _, protocol := range c.Protocols() {
					pfn, err := c.PFN(protocol, lfn)
					if err != nil {
						continue
					}
					got, err := c.LFN(protocol, pfn)
					again, _ := c.PFN(protocol, got)
					switch {
					case err == nil && len(c.backward[protocol]) == 0 && again != pfn:
						t.Fatalf("%s: %s became %s, which came back as %s, which becomes %s", protocol, lfn, pfn, got, again)
					case err == nil && got == lfn:
						back++
					case err != nil && strings.HasSuffix(pfn, lfn):
						t.Fatalf("%s: %s does not come back: %v", protocol, pfn, err)
					}
				}
			})
			if back == 0 {
				t.Error("no name came back")
			}
		})
	}
}

func TestRulesOfBothDirections(t *testing.T) {
	c, err := ReadXML(strings.NewReader(`<storage-mapping>
		<lfn-to-pfn protocol="a" path-match="/+store/(.*)/(.*)" result="/a/$2/$1"/>
		<lfn-to-pfn protocol="b" path-match="/+(.*)" result="root://h//$1" chain="a"/>
		<lfn-to-pfn protocol="lossy" path-match="/+(.*)\.v[0-9]+" result="/l/$1"/>
		<lfn-to-pfn protocol="first" path-match="/+store/(.*)" result="/f/$1"/>
		<lfn-to-pfn protocol="first" path-match="/+(.*)" result="/f/$1"/>
		<lfn-to-pfn protocol="circle" path-match="(.*)" result="$1" chain="circle"/>
		<lfn-to-pfn protocol="circle" path-match="(.*)" result="$1" chain="circle"/>
		<pfn-to-lfn protocol="said" path-match="root://h/(.*)" result="$1" chain="more"/>
		<pfn-to-lfn protocol="more" path-match="/+eos(.*)" result="/store$1"/>
	</storage-mapping>`))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range [][3]string{
		{"a", "/a/f.root/x/y", "/store/x/y/f.root"},
		{"a", "/b/x/y", ""},
		{"b", "root://h//a/f/x", "/store/x/f"},
		{"lossy", "/l/x", ""},
		{"first", "/f/x", "/store/x"},
		{"circle", "/x", ""},
		{"said", "root://h//eos/x", "/store/x"},
		{"unknown", "/x", ""},
	} {
		got, err := c.LFN(one[0], one[1])
		if got != one[2] || (err == nil) != (one[2] != "") || err != nil && !errors.Is(err, ErrNoRule) {
			t.Errorf("%s %s: got %q, %v, want %q", one[0], one[1], got, err, one[2])
		}
	}
}

// Rules that repeat a part of the name, in a circle or one after the other, end.
func TestRulesThatRepeatEnd(t *testing.T) {
	text := `<storage-mapping><pfn-to-lfn protocol="p" path-match="(.*)" result="$1$1$1$1$1$1$1$1" chain="p"/>`
	for i := range MaxChain - 1 {
		text += fmt.Sprintf(`<lfn-to-pfn protocol="c%d" path-match="(.*)" result="$1$1$1$1$1$1$1$1" chain="c%d"/>`, i, i+1)
	}
	c, err := ReadXML(strings.NewReader(text +
		fmt.Sprintf(`<lfn-to-pfn protocol="c%d" path-match="(.*)" result="$1"/></storage-mapping>`, MaxChain-1)))
	if err != nil {
		t.Fatal(err)
	}
	if name, err := c.LFN("p", "/x"); !errors.Is(err, ErrNoRule) {
		t.Errorf("%d bytes, %v", len(name), err)
	}
	if name, err := c.PFN("c0", "/x"); !errors.Is(err, ErrNoRule) {
		t.Errorf("%d bytes, %v", len(name), err)
	}
	if name, err := c.PFN(fmt.Sprint("c", MaxChain-4), "/x"); len(name) != 2*8*8*8 || err != nil {
		t.Errorf("%d bytes, %v", len(name), err)
	}
}

func FuzzReadXML(f *testing.F) {
	f.Add([]byte(`<storage-mapping><pfn-to-lfn protocol="p" path-match="/x(.*)" result="/store"/></storage-mapping>`), "/x/a")
	f.Add([]byte(`<storage-mapping><lfn-to-pfn protocol="direct" path-match="/+(.*)" result="/x/$1" chain="direct"/></storage-mapping>`), "/a")
	f.Fuzz(func(t *testing.T, data []byte, lfn string) {
		if c, err := ReadXML(bytes.NewReader(data)); err == nil {
			translateBothWays(t, c, lfn)
		}
	})
}

func FuzzReadJSON(f *testing.F) {
	f.Add([]byte(`[{"site": "S", "protocols": [{"protocol": "p", "rules": [{"lfn": "/+(.*)", "pfn": "/x/$1", "chain": "p"}]}]}]`), "/a")
	f.Fuzz(func(t *testing.T, data []byte, lfn string) {
		if c, err := ReadJSON(bytes.NewReader(data), "", ""); err == nil {
			translateBothWays(t, c, lfn)
		}
	})
}

// translateBothWays translates a name by each protocol. A logical name that was found by turning rules round is
// translated into the name that was given, and none leads out. Rules for the way back say what they like.
func translateBothWays(t *testing.T, c *Catalog, name string) {
	t.Helper()
	for _, p := range c.Protocols() {
		if _, err := c.PFN(p, name); err == nil && slices.Contains(strings.Split(name, "/"), "..") {
			t.Errorf("%s: %q leads out", p, name)
		}
		lfn, err := c.LFN(p, name)
		if _, given := c.back(p, name, MaxChain); given || err != nil {
			continue
		}
		if again, err := c.PFN(p, lfn); err != nil || again != name {
			t.Errorf("%s: %q has the logical name %q, which stands for %q, %v", p, name, lfn, again, err)
		}
	}
}

// A rule adds a prefix, and ".." behind it would lead to other files than those of the
// site.
func TestLogicalNamesDoNotLeadOut(t *testing.T) {
	c, err := ReadXML(strings.NewReader(`<storage-mapping><lfn-to-pfn protocol="direct" path-match="(.*)" result="file:/data$1"/></storage-mapping>`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/store/a..b":             "file:/data/store/a..b",
		"/store/../../etc/passwd": "",
		"..":                      "",
		"/..":                     "",
	} {
		if got, err := c.PFN("direct", name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
