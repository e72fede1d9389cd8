// Package client speaks to a running host: Admin over its Unix socket, as the commands do, and Data over TCP, as a
// producer does. Both are safe for concurrent use.
//
// Errors are an *UnreachableError if no host answers, a *wire.Problem if it refuses, and else what went wrong between.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

const (
	answerBytes = 256 << 20 // largest answer that is read
	callTimeout = time.Minute
)

// UnreachableError says that no host answers at an address.
type UnreachableError struct {
	Address string
	Remote  bool // the address is one of TCP, and no socket of this machine
	Err     error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no host answers at %s: %v", e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// caller makes JSON calls to one address.
type caller struct {
	http    *http.Client
	base    string // scheme and host
	address string // as people name it
	token   string // bearer token; "" is none
}

func newCaller(base, address, network, dial string) caller {
	var d net.Dialer
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, dial)
		},
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
	}
	return caller{http: &http.Client{Transport: transport, Timeout: callTimeout}, base: base, address: address}
}

// call sends in as JSON, if it isn't nil, and reads the answer into out.
func (c caller) call(ctx context.Context, method, path string, in, out any) error {
	_, err := c.callTagged(ctx, method, path, "", in, out)
	return err
}

// callTagged is call of what has a tag: tag, if it isn't "", must be the one that it has, and "*" is any. It returns the tag
// of what is answered; "" is none.
func (c caller) callTagged(ctx context.Context, method, path, tag string, in, out any) (string, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return "", fmt.Errorf("encode the request: %w", err)
		}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	switch tag {
	case "":
	case "*":
		header.Set("If-Match", tag)
	default:
		header.Set("If-Match", `"`+strings.Trim(tag, `"`)+`"`)
	}
	answer, err := c.send(ctx, method, path, header, body, out)
	return strings.Trim(answer.Get("ETag"), `"`), err
}

// send sends a request with a header of its own, reads the answer into out, and returns the answer's header.
func (c caller) send(ctx context.Context, method, path string, header http.Header, body []byte, out any) (http.Header, error) {
	req, err := c.request(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		header.Del("Content-Type")
	}
	maps.Copy(req.Header, header)
	return c.exchange(req, out)
}

// request makes a request.
func (c caller) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// exchange sends a request, reads the answer into out, and returns the answer's header.
func (c caller) exchange(req *http.Request, out any) (http.Header, error) {
	resp, err := c.http.Do(req) //nolint:gosec // which host to call is the user's to say
	if err != nil {
		return nil, c.transportError(req.Context(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	if err != nil {
		return nil, c.transportError(req.Context(), err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return resp.Header, problemOf(resp, raw)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return resp.Header, fmt.Errorf("the answer of %s is not as expected: %w", c.address, err)
	}
	return resp.Header, nil
}

// stream copies an answer that may take any time to w.
func (c caller) stream(ctx context.Context, path string, w io.Writer) error {
	body, err := c.open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	from := &source{r: body}
	if _, err := io.Copy(w, from); err != nil {
		if from.err != nil {
			return c.transportError(ctx, from.err)
		}
		return err
	}
	return nil
}

// events calls yield for each event of an answer that may take any time, until yield returns an error, which it returns.
func (c caller) events(ctx context.Context, path string, yield func(wire.Event) error) error {
	body, err := c.open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	for dec := json.NewDecoder(body); ; {
		var e wire.Event
		err := dec.Decode(&e)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return c.transportError(ctx, err)
		}
		if err := yield(e); err != nil {
			return err
		}
	}
}

// open returns the body of an answer that may take any time.
func (c caller) open(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	unhurried := http.Client{Transport: c.http.Transport}
	resp, err := unhurried.Do(req)
	if err != nil {
		return nil, c.transportError(ctx, err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	if err != nil {
		return nil, c.transportError(ctx, err)
	}
	return nil, problemOf(resp, raw)
}

// source remembers the error of an answer, to tell it from that of whoever takes it.
type source struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// transportError tells "nobody is there" from a call that broke off or took too long.
func (c caller) transportError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("call %s: %w", c.address, ctx.Err())
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &UnreachableError{Address: c.address, Remote: op.Net != "unix", Err: op.Err}
	}
	return fmt.Errorf("call %s: %w", c.address, err)
}

// problemOf reads a problem, or makes one of an answer that isn't.
func problemOf(resp *http.Response, raw []byte) error {
	p := &wire.Problem{}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), wire.ProblemContentType) || json.Unmarshal(raw, p) != nil {
		p = &wire.Problem{Title: resp.Status, Detail: fmt.Sprintf("%s: %.200q", resp.Status, raw)}
	}
	p.Status = resp.StatusCode
	return p
}
