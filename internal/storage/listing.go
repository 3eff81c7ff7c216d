package storage

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"time"
)

// Limits of what a server may tell of a folder. One that tells more, or does not come to an
// end, gives a [ListingError].
const (
	// MaxEntries is how many names a folder may have.
	MaxEntries = 1_000_000
	// MaxListing is how many bytes a server may send for them, in all.
	MaxListing = 256 << 20
	// ListTime is how long a server may take, in all.
	ListTime = 15 * time.Minute
	// MaxDepth is how deep elements of XML may stand in each other.
	MaxDepth = 32
	// MaxText is the size of one element of XML without those in it, in bytes: of a name.
	MaxText = 64 << 10
)

// ListingError says that a server lists a folder as no server may. Asking again does not help.
type ListingError struct {
	PFN string // as Shown
	Why string // with the limit
}

func (e *ListingError) Error() string {
	return fmt.Sprintf("%s: the server lists this folder without an end, or wrongly: %s; name the files in a url_list",
		e.PFN, e.Why)
}

// Errors of XML that is larger than a listing may be.
var (
	errDeep  = fmt.Errorf("elements stand in each other more than %d deep (MaxDepth)", MaxDepth)
	errText  = fmt.Errorf("one element has more than %d bytes (MaxText)", MaxText)
	errBytes = errors.New("it is too long")
)

// ScanXML reads a document as a stream, of most bytes at most. It tells of each element when
// that ends: with the names of the elements that it stands in, the outermost first, its own
// last, and its text without that of the elements in it. Nothing that it gives is kept. What
// is beyond MaxDepth, MaxText or most is an error. What follows the outermost element is not read.
func ScanXML(body io.Reader, most int64, ended func(path []xml.Name, text string) error) error {
	from := &meteredBytes{Reader: bufio.NewReader(body), left: most, most: most}
	decoder := xml.NewDecoder(from)
	var path []xml.Name
	texts := make([][]byte, MaxDepth+1)
	for {
		from.token = 0
		token, err := decoder.Token()
		if from.failed != nil {
			return from.failed
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if len(path) == MaxDepth {
				return errDeep
			}
			path = append(path, token.Name)
			texts[len(path)] = texts[len(path)][:0]
		case xml.CharData:
			text := &texts[len(path)]
			if len(*text)+len(token) > MaxText {
				return errText
			}
			if len(path) > 0 {
				*text = append(*text, token...)
			}
		case xml.EndElement:
			if err := ended(path, string(texts[len(path)])); err != nil {
				return err
			}
			if path = path[:len(path)-1]; len(path) == 0 {
				return nil
			}
		}
	}
}

// meteredBytes is what a decoder of XML reads from. It keeps a token whole until its end.
type meteredBytes struct {
	*bufio.Reader
	token      int // bytes of this one
	left, most int64
	failed     error
}

// ReadByte is part of io.ByteReader.
func (m *meteredBytes) ReadByte() (byte, error) {
	switch {
	case m.token >= MaxText:
		m.failed = errText
	case m.left <= 0:
		m.failed = fmt.Errorf("%w: more than %d bytes", errBytes, m.most)
	}
	if m.failed != nil {
		return 0, m.failed
	}
	b, err := m.Reader.ReadByte()
	if err == nil {
		m.token++
		m.left--
	}
	return b, err
}
