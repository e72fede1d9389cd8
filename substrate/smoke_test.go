package substrate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	publish(t, l, testTopic, "a", "b", "c")
	d := claim(t, l, testTopic, 2)
	require.Equal(t, []string{"a", "b"}, payloads(d))
	settle(t, l, d[0], Ack, "")
	settle(t, l, d[1], Bury, "bad")
	require.Equal(t, int64(1), stats(t, l, testTopic).DeadLetters)
	dl, err := l.DeadLetters(t.Context(), testTenant, testTopic, DeadLetterFilter{})
	require.NoError(t, err)
	require.Len(t, dl, 1)
	r, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
	require.NoError(t, err)
	require.Equal(t, 1, r.Moved)
	require.Equal(t, []string{"b", "c"}, payloads(claim(t, l, testTopic, 9)))
	n := reopenCrashed(t, dir)
	require.Equal(t, []string{"b", "c"}, payloads(claim(t, n, testTopic, 9)))
}
