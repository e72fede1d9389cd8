package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/limits"
)

// readBatch reads the JSON of a batch, strictly: what isn't understood is refused, because it would be lost.
func readBatch(body io.Reader, h http.Header) ([]wire.NewMessage, error) {
	if len(h.Values(wire.MetadataHeader)) > 0 {
		return nil, badBatch("takes its metadata from each message, not from " + wire.MetadataHeader)
	}
	for _, o := range optionHeaders() {
		if len(h.Values(o.header)) > 0 {
			return nil, badBatch("takes its options from each message (" + o.field + "), not from " + o.header)
		}
	}
	raw, err := readAll(body)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) {
		return nil, badBatch("is not UTF-8; send binary payloads as data_base64")
	}
	switch err := checkJSON(raw); {
	case errors.Is(err, errJSONBound):
		return nil, problem(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, "the batch is refused: "+err.Error())
	case err != nil:
		return nil, badBatch(fmt.Sprintf("is not as expected: %.200q", err))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var b wire.Batch
	if err := dec.Decode(&b); err != nil {
		return nil, badBatch(fmt.Sprintf("is not as expected: %.200q", err))
	}
	if len(b.Messages) == 0 {
		return nil, badBatch(`has no messages; send {"messages":[{"data":"…"}]}`)
	}
	if err := limits.Check(limits.NameBatchMessages, int64(len(b.Messages)), limits.BatchMessages); err != nil {
		return nil, err
	}
	return b.Messages, nil
}

func badBatch(what string) *wire.Problem {
	return problem(http.StatusBadRequest, wire.CodeInvalid, "the batch "+what)
}

// metadataOf reads the metadata headers in their order.
func metadataOf(h http.Header) ([]wire.Pair, error) {
	values := h.Values(wire.MetadataHeader)
	if err := limits.Check(limits.NameMetadataPairs, int64(len(values)), limits.MetadataPairs); err != nil {
		return nil, err
	}
	var out []wire.Pair
	for i, v := range values {
		key, escaped, ok := strings.Cut(v, "=")
		value, err := url.PathUnescape(escaped)
		if !ok || key == "" || err != nil {
			return nil, problem(http.StatusBadRequest, wire.CodeInvalid,
				fmt.Sprintf("%s number %d is not key=value with a percent-encoded value", wire.MetadataHeader, i+1))
		}
		out = append(out, wire.Pair{Key: key, Value: value})
	}
	return out, nil
}

func tooLarge(err error) bool {
	var e *http.MaxBytesError
	return errors.As(err, &e)
}
