package bearer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
)

// keySet is the keys of an issuer, as they were when they were last read. Whoever finds them old reads them again; nobody
// waits for that who has a key.
type keySet struct {
	place     string
	algorithm string
	now       func() time.Time
	client    *http.Client

	reading chan struct{} // holds a value while somebody reads
	mu      sync.Mutex
	keys    map[string]any // public keys by kid
	read    time.Time      // when keys were read
	tried   time.Time      // when somebody last began to read
	fault   error          // of the last try
}

func newKeySet(place, algorithm string, o Options) *keySet {
	return &keySet{
		place: place, algorithm: algorithm, now: o.Now, reading: make(chan struct{}, 1),
		client: &http.Client{
			Transport: o.Transport, Timeout: limits.KeySetWait,
			// The operator named this place, and no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// find returns the key with an id.
func (s *keySet) find(ctx context.Context, id string) (any, error) {
	key, known, due := s.look(id)
	if known && !due {
		return key, nil
	}
	if due || !known { // who has no key waits for those who are reading
		if err := s.refresh(ctx, known); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		key, known, _ = s.look(id)
	}
	if known {
		return key, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil || s.now().Sub(s.read) > limits.KeySetStale {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, s.why())
	}
	return nil, fmt.Errorf("%w: its issuer has no key of its kid", ErrRefused)
}

// why says why there are no keys.
func (s *keySet) why() error {
	if s.fault == nil {
		return errors.New("they were not read yet")
	}
	return s.fault
}

// look returns a key as it is known, and whether the set is to be read again: it is old, or doesn't have the key, and nobody
// tried lately.
func (s *keySet) look(id string) (key any, known, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if key, known = s.keys[id]; now.Sub(s.read) > limits.KeySetStale {
		known = false
	}
	old := now.Sub(s.read) >= limits.KeySetRefresh
	return key, known, (old || !known) && (s.tried.IsZero() || now.Sub(s.tried) >= limits.KeySetRetry)
}

// refresh reads the set, unless somebody else does: then it waits for that, or goes on with what is known.
func (s *keySet) refresh(ctx context.Context, known bool) error {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	default:
		if known {
			return nil
		}
		select {
		case s.reading <- struct{}{}: // it is read
			<-s.reading
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	if !s.tried.IsZero() && s.now().Sub(s.tried) < limits.KeySetRetry { // since look
		s.mu.Unlock()
		return nil
	}
	s.tried = s.now()
	s.mu.Unlock()
	// A client that goes away must not spoil the try for the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.KeySetWait)
	defer cancel()
	raw, err := s.load(ctx)
	var keys map[string]any
	if err == nil {
		keys, err = parseSet(raw, s.algorithm)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault = err; err == nil {
		s.keys, s.read = keys, s.now()
	}
	return nil // find says what is left
}

// load reads the bytes of the set.
func (s *keySet) load(ctx context.Context) ([]byte, error) {
	if !IsURL(s.place) {
		f, err := os.Open(s.place) // the operator names it
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		return readBounded(f)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.place, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the key set's address answers %d", resp.StatusCode)
	}
	return readBounded(resp.Body)
}

func readBounded(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limits.KeySetBytes+1))
	if err == nil && len(raw) > limits.KeySetBytes {
		err = fmt.Errorf("the key set is over %d bytes", limits.KeySetBytes)
	}
	return raw, err
}

// IsURL reports whether a place of keys is a URL, and not a path.
func IsURL(place string) bool {
	return strings.HasPrefix(place, "https://") || strings.HasPrefix(place, "http://")
}
