package main

import (
	"fmt"
	"strings"

	longshore "github.com/longshore/longshore/guests/go"
)

// values keeps the payload's lines under their numbers, and reports what it finds.
func values(m *longshore.Message) error {
	_, denied := longshore.OpenBucket("secrets")
	b, err := longshore.OpenBucket("stock")
	if err != nil {
		return err
	}
	defer b.Close()
	for i, line := range strings.Fields(string(m.Data)) {
		if err := b.Set(fmt.Sprintf("key%d", i), []byte(line)); err != nil {
			return err
		}
	}
	if err := b.Set("empty", nil); err != nil {
		return err
	}
	if err := b.Delete("key0"); err != nil {
		return err
	}
	keys, err := b.Keys()
	if err != nil {
		return err
	}
	report := fmt.Sprintf("%v\n%d %s\n", denied, len(keys), strings.Join(keys, " "))
	for _, key := range []string{"key0", "key1", "empty", "before"} {
		value, found, err := b.Get(key)
		if err != nil {
			return err
		}
		exists, err := b.Exists(key)
		if err != nil {
			return err
		}
		report += fmt.Sprintf("%s %v %v %q\n", key, found, exists, value)
	}
	report += fmt.Sprint(b.Set("", nil))
	return longshore.Send("out", &longshore.Message{Data: []byte(report)})
}

// config reports what the keys of the payload are set to.
func config(m *longshore.Message) error {
	var text string
	for _, key := range strings.Fields(string(m.Data)) {
		value, found := longshore.Config(key)
		if !found {
			value = "nothing"
		}
		text += key + ": " + value + "\n"
	}
	return report("report", text)
}
