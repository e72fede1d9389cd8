package crashtest

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/client"
)

// Where the tests without consumers publish.
const (
	openTenant = "default"
	openTopic  = "open"
	none       = "none.yaml" // a manifest without consumers
)

// newOpenFolder makes a folder whose host takes messages and has no consumers.
func newOpenFolder(t *testing.T) folder {
	t.Helper()
	f := newFolder(t, "  - {topic: "+openTopic+", anonymous: true}")
	f.write(t, none, []byte("consumers: []"))
	return f
}

func TestPublishThatReturned2xxSurvivesKillAtOnceAfter(t *testing.T) {
	const rounds = 10
	f := newOpenFolder(t)
	var want []string
	for round := range rounds {
		h := f.startReady(t, none)
		requireStored(t, h.admin, want)
		c := &http.Client{Transport: &http.Transport{}}
		payload := strconv.Itoa(round)
		_, err := post(t.Context(), c, h.address, openTenant, openTopic, payload)
		h.kill(t)
		require.NoError(t, err)
		c.CloseIdleConnections()
		want = append(want, payload)
	}
	h := f.startReady(t, none)
	requireStored(t, h.admin, want)
	h.kill(t)
}

// requireStored requires that the open topic holds messages with these payloads, in this order, and no others.
func requireStored(t *testing.T, admin *client.Admin, want []string) {
	t.Helper()
	if want == nil {
		return // there is no topic yet
	}
	var got []string
	for _, m := range stored(t, admin, openTenant, openTopic) {
		got = append(got, string(m.DataBase64))
	}
	require.Equal(t, want, got)
}
