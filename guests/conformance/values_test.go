package conformance_test

import (
	"context"
	"maps"
	"slices"

	"github.com/longshore/longshore/wasi/messaging"
)

// shelf is a store with one bucket, "stock", that lists two keys at a time.
type shelf map[string]string

func (s shelf) Open(bucket string) *messaging.StoreError {
	if bucket != "stock" {
		return &messaging.StoreError{Case: messaging.StoreAccessDenied}
	}
	return nil
}

func (s shelf) Get(_, key string) ([]byte, bool, *messaging.StoreError) {
	value, found := s[key]
	return []byte(value), found, nil
}

func (s shelf) Set(_, key string, value []byte) *messaging.StoreError {
	if key == "" {
		return &messaging.StoreError{Case: messaging.StoreOther, Text: "no key"}
	}
	s[key] = string(value)
	return nil
}

func (s shelf) Delete(_, key string) *messaging.StoreError {
	delete(s, key)
	return nil
}

func (s shelf) List(_ context.Context, _, after string) (keys []string, more bool, err *messaging.StoreError) {
	all := slices.Sorted(maps.Keys(s))
	all = slices.DeleteFunc(all, func(key string) bool { return key <= after })
	return all[:min(2, len(all))], len(all) > 2, nil
}

// valuesReport is what a guest that was given "one two three" reports of a shelf that has a value under "before".
const valuesReport = "access-denied\n4 before empty key1 key2\n" +
	"key0 false false \"\"\nkey1 true true \"two\"\nempty true true \"\"\nbefore true true \"it\"\nother: no key"

// settings is what the manifest says under config.
func settings() []messaging.Pair {
	return []messaging.Pair{{Key: "greeting", Value: "häl✓lo"}, {Key: "empty", Value: ""}}
}

// stored are the cases of what a consumer is given beside messages: values and configuration.
func stored() []testCase {
	return []testCase{
		{name: "Values", give: one(text("values", "one two three")), want: one(text("out", valuesReport))},
		{name: "Config", give: one(text("config", "greeting empty absent")), want: one(text("report", "greeting: häl✓lo\nempty: \nabsent: nothing\n"))},
	}
}
