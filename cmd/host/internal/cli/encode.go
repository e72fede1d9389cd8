package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
)

// printJSON writes v with what has no visible form escaped, so that it can be looked at on a terminal: JSON itself would
// leave all but the first 32 control characters as they are. What a program reads is the same.
func printJSON(w io.Writer, v any) error {
	text, err := encodeJSON(v)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		if _, err := w.Write(telemetry.Escape(line)); err != nil {
			return err
		}
	}
	return nil
}

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b.Bytes(), nil
}

// printYAML writes the same keys in the same order as JSON would. Text that holds what has no visible form is written in
// double quotes, with that escaped.
func printYAML(w io.Writer, v any) error {
	text, err := encodeJSON(v)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	node, err := nodeOf(dec)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = io.WriteString(w, escapeYAML(b.String()))
	return err
}

// nodeOf reads one JSON value.
func nodeOf(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.MappingNode}
		if token == '[' {
			node.Kind = yaml.SequenceNode
		}
		for dec.More() { // of a mapping, keys and values take turns
			inner, err := nodeOf(dec)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, inner)
		}
		_, err := dec.Token() // the end
		return node, err
	case string:
		node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: token}
		if strings.ContainsFunc(token, telemetry.Hidden) {
			node.Style = yaml.DoubleQuotedStyle
		}
		return node, nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	default: // a number or a bool, written as in JSON
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil
	}
}

// escapeYAML escapes what the encoder leaves: all of it is in double quotes, but for the ends of lines.
func escapeYAML(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || !telemetry.Hidden(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
