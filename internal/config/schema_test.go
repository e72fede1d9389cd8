package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSchema(t *testing.T) {
	for name, make := range map[string]func() ([]byte, error){"host": HostSchema, "manifest": ManifestSchema} {
		t.Run(name, func(t *testing.T) {
			t.Run("CompilesAndIsStable", func(t *testing.T) {
				_, err := compile(make())
				require.NoError(t, err)
				first, err := make()
				require.NoError(t, err)
				second, err := make()
				require.NoError(t, err)
				require.Equal(t, string(first), string(second))
			})
			t.Run("TakesNoUnknownKeyAnywhere", func(t *testing.T) {
				for path, part := range partsOf(t, make) {
					if part["type"] == "object" && part["title"] != "a mapping of texts" { // whose keys are the deployer's
						require.Equal(t, false, part["additionalProperties"], path)
					}
				}
			})
			t.Run("SaysOfEveryValueWhatWouldBeRight", func(t *testing.T) {
				for path, part := range partsOf(t, make) {
					require.NotEmpty(t, want(part), path)
				}
			})
			t.Run("DescribesEveryKey", func(t *testing.T) {
				for path, part := range partsOf(t, make) {
					if path != "" && !strings.HasSuffix(path, "[]") {
						require.NotEmpty(t, part["description"], path)
					}
				}
			})
		})
	}
}

// partsOf returns the parts of a schema by the path of the value that they are about, with references resolved.
func partsOf(t *testing.T, schema func() ([]byte, error)) map[string]map[string]any {
	t.Helper()
	s, err := compile(schema())
	require.NoError(t, err)
	parts := map[string]map[string]any{}
	var walk func(path string, part map[string]any)
	walk = func(path string, part map[string]any) {
		if reference, ok := part["$ref"].(string); ok {
			merged := map[string]any{}
			for key, value := range s.at(reference) {
				merged[key] = value
			}
			for key, value := range part {
				merged[key] = value
			}
			delete(merged, "$ref")
			part = merged
		}
		parts[path] = part
		if items, ok := part["items"].(map[string]any); ok {
			walk(path+"[]", items)
		}
		properties, _ := part["properties"].(map[string]any)
		for key, value := range properties {
			walk(join(path, key), value.(map[string]any))
		}
	}
	walk("", s.tree.(map[string]any))
	return parts
}

// TestDocsNameEveryKey keeps docs/manifest.md complete and its figures true.
func TestDocsNameEveryKey(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "manifest.md"))
	require.NoError(t, err)
	docs := string(data)
	for _, schema := range []func() ([]byte, error){HostSchema, ManifestSchema} {
		for path := range partsOf(t, schema) {
			if path == "" || strings.HasSuffix(path, "[]") {
				continue
			}
			for _, shared := range []string{"consumers[].", "defaults.", "ceilings."} { // one table for the three
				if inner := strings.TrimPrefix(path, shared); strings.HasPrefix(inner, "limits.") || strings.HasPrefix(inner, "retry.") || shared != "consumers[]." {
					path = inner
				}
			}
			if path == "limits" || path == "retry" {
				continue // headings of the table's rows
			}
			require.Contains(t, docs, "| `"+path+"` |", path)
		}
	}
	defaults, ceilings := DefaultDelivery(), DefaultCeilings()
	for _, b := range bounds() {
		f := b.unit.format
		require.Contains(t, docs, fmt.Sprintf("| `%s` | %s | %s | %s | %s |", b.path, f(b.get(&defaults)), f(b.get(&ceilings)), f(b.min), f(b.max)))
	}
}

func TestDocsExamplesAreValid(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "manifest.md"))
	require.NoError(t, err)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	require.Len(t, examples, 3)
	_, err = ParseHost("longshore.yaml", []byte(examples[1][1]), Overrides{})
	require.NoError(t, err)
	h, err := ParseHost("longshore.yaml", []byte(examples[0][1]), Overrides{})
	require.NoError(t, err)
	_, err = ParseManifest("consumers.yaml", []byte(examples[2][1]), h)
	require.NoError(t, err)
}

func TestGroupNamesAreThoseOfTheLog(t *testing.T) {
	pattern := regexp.MustCompile("^" + segmentPattern + "$")
	for name, fine := range map[string]bool{"a": true, "A-1._": true, "...": true, ".a": true, "": false, ".": false, "..": false, "a/b": false, "ä": false} {
		require.Equal(t, fine, pattern.MatchString(name), "%q", name)
	}
}

func TestTopicNamesAreThoseOfTheLog(t *testing.T) {
	pattern := regexp.MustCompile("^" + topicPattern + "$")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a.\-_/ ]{0,8}`).Draw(t, "name")
		valid := true
		for segment := range strings.SplitSeq(name, "/") {
			valid = valid && segment != "" && segment != "." && segment != ".." && !strings.Contains(segment, " ")
		}
		require.Equal(t, valid, pattern.MatchString(name), "%q", name)
	})
	for length, fine := range map[int]bool{1: true, 200: true, 201: false} {
		_, err := parseHostText("topics: [{topic: " + strings.Repeat("a", length) + "}]")
		require.Equal(t, fine, err == nil, length)
	}
}

func TestSuggestions(t *testing.T) {
	s, err := compile(ManifestSchema())
	require.NoError(t, err)
	part := s.at("#/$defs/consumer")
	for wrong, right := range map[string]string{"modul": "module", "limist": "limits", "Topic": "topic", "maxattempts": "max_attempts", "nmae": "name"} { //nolint:misspell // misspelt on purpose
		require.Equal(t, fmt.Sprintf("did you mean %q?", right), s.suggest(part, wrong))
	}
	require.Contains(t, s.suggest(part, "replicas"), "known keys: batch, breaker, buckets, build, ")
	require.Contains(t, s.suggest(part, ""), "known keys: ")
}

func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[ab]{0,6}`).Draw(t, "a"), rapid.StringMatching(`[ab]{0,6}`).Draw(t, "b")
		n := distance(a, b)
		require.Equal(t, n, distance(b, a))
		require.Equal(t, a == b, n == 0)
		require.LessOrEqual(t, n, max(len(a), len(b)))
		require.GreaterOrEqual(t, n, max(len(a), len(b))-min(len(a), len(b)))
	})
}

func TestSchemaIsJSON(t *testing.T) {
	text, err := ManifestSchema()
	require.NoError(t, err)
	require.True(t, json.Valid(text))
}
