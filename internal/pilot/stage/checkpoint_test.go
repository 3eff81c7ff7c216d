package stage

import "testing"

// What is marked must be in the folder.
func TestMarksOfStates(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"files": ["a", "b/c"]}`: true, `{"files": ["../a"]}`: false, `{"files": ["/a"]}`: false,
		`{"files": ["a", "a"]}`: false, `{"files": ["whole.json"]}`: false, `{"files": ["."]}`: false, `{`: false,
	} {
		if _, err := parseMark([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzMark(f *testing.F) {
	f.Add([]byte(`{"files": ["a", "b/c"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		names, err := parseMark(text)
		for _, name := range names {
			if err == nil && (name == MarkName || name[0] == '/') {
				t.Errorf("%q", name)
			}
		}
	})
}
