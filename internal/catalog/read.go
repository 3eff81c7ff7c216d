package catalog

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// ReadFile reads a catalogue, of either kind: what begins with "<" is a
// storage.xml. site and volume are as for [ReadJSON]. Errors name the file.
func ReadFile(path, site, volume string) (*Catalog, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c, err := Read(data, site, volume)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Read is ReadFile of what a file holds.
func Read(data []byte, site, volume string) (*Catalog, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		return ReadXML(bytes.NewReader(data))
	}
	return ReadJSON(bytes.NewReader(data), site, volume)
}

// ErrTooLarge is wrapped when a catalog has more than MaxBytes.
var ErrTooLarge = fmt.Errorf("the catalog is larger than %d bytes", MaxBytes)

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = ErrTooLarge
	}
	return data, err
}

type xmlRule struct {
	XMLName  xml.Name
	Protocol string `xml:"protocol,attr"`
	Match    string `xml:"path-match,attr"`
	Result   string `xml:"result,attr"`
	Chain    string `xml:"chain,attr"`
}

// ReadXML reads a storage.xml: the elements lfn-to-pfn and pfn-to-lfn in a
// storage-mapping. Errors name the line.
func ReadXML(r io.Reader) (*Catalog, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, err
	}
	c, decoder := newCatalog(), xml.NewDecoder(strings.NewReader(string(data)))
	mappings := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && mappings > 0 {
			return c, nil
		}
		if err != nil {
			return nil, fmt.Errorf("this is no storage.xml: %w", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "storage-mapping" {
			mappings++
		} else if err := c.element(decoder, start); err != nil {
			line, _ := decoder.InputPos()
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (c *Catalog) element(decoder *xml.Decoder, start xml.StartElement) error {
	kind := start.Name.Local
	if kind != "lfn-to-pfn" && kind != "pfn-to-lfn" {
		return decoder.Skip()
	}
	var x xmlRule
	if err := decoder.DecodeElement(&x, &start); err != nil {
		return err
	}
	if x.Protocol == "" || x.Match == "" {
		return fmt.Errorf("%s needs the attributes protocol and path-match", kind)
	}
	r, err := newRule(x.Match, x.Result, x.Chain)
	if err != nil {
		return err
	}
	if kind == "pfn-to-lfn" {
		c.backward[x.Protocol] = append(c.backward[x.Protocol], r)
		return nil
	}
	c.add(x.Protocol, r)
	return nil
}

type jsonVolume struct {
	Site      string
	Volume    string
	Protocols []struct {
		Protocol string
		Prefix   *string
		Rules    []struct{ LFN, PFN, Chain string }
	}
}

// ReadJSON reads the part of a storage.json that describes a volume of a site.
// An empty site or volume matches any; the first that matches is taken.
func ReadJSON(r io.Reader, site, volume string) (*Catalog, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, err
	}
	var volumes []jsonVolume
	if err := json.Unmarshal(data, &volumes); err != nil {
		return nil, fmt.Errorf("this is no storage.json: %w", err)
	}
	for _, v := range volumes {
		if (site == "" || v.Site == site) && (volume == "" || v.Volume == volume) {
			return v.catalog()
		}
	}
	return nil, fmt.Errorf("it has no site %q with volume %q", site, volume)
}

func (v *jsonVolume) catalog() (*Catalog, error) {
	c := newCatalog()
	fail := func(protocol string, err error) error {
		return fmt.Errorf("site %s, volume %s, protocol %s: %w", v.Site, v.Volume, protocol, err)
	}
	for _, p := range v.Protocols {
		if p.Prefix != nil {
			c.add(p.Protocol, rule{match: anyName, prefix: strings.TrimSuffix(*p.Prefix, "/") + "/", result: "$1"}.invertible())
			continue
		}
		for _, x := range p.Rules {
			r, err := newRule(x.LFN, x.PFN, x.Chain)
			if err != nil {
				return nil, fail(p.Protocol, err)
			}
			c.add(p.Protocol, r)
		}
		if len(p.Rules) == 0 {
			return nil, fail(p.Protocol, errors.New("it needs a prefix or rules"))
		}
	}
	return c, nil
}

// anyName keeps the slashes before a name out of the group, since a prefix is
// followed by just one.
var anyName = regexp.MustCompile(`^/*((?s:.*))$`)
