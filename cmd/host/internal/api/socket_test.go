package api

import (
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestListenSocket(t *testing.T) {
	t.Run("OnlyTheUserMayOpenIt", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "data", "a.sock")
		l, err := ListenSocket(t.Context(), path)
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1, "the folder that the socket was born in is gone")
		require.NoError(t, l.Close())
		require.NoFileExists(t, path)
	})
	t.Run("ASocketThatNobodyListensOnIsReplaced", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.sock")
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		require.NoError(t, err)
		dead.SetUnlinkOnClose(false)
		require.NoError(t, dead.Close())
		require.FileExists(t, path)
		l, err := ListenSocket(t.Context(), path)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
	t.Run("ASocketInUseIsLeftAlone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.sock")
		first, err := ListenSocket(t.Context(), path)
		require.NoError(t, err)
		_, err = ListenSocket(t.Context(), path)
		require.ErrorIs(t, err, ErrSocketInUse)
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "unix", path)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.NoError(t, first.Close())
	})
	t.Run("AFileThatIsNoSocketIsLeftAlone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.sock")
		require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
		_, err := ListenSocket(t.Context(), path)
		require.ErrorContains(t, err, "no socket")
		require.FileExists(t, path)
	})
	t.Run("APathTooLongForTheSystemSaysSo", func(t *testing.T) {
		_, err := ListenSocket(t.Context(), "/"+strings.Repeat("x", 200))
		require.ErrorContains(t, err, "set listen.admin to a shorter one")
	})
}

func TestServer(t *testing.T) {
	t.Run("TakesNoMoreConnectionsThanItsCap", func(t *testing.T) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // other tests' connections may be about to end
		inner := listenTCP(t)
		l := limitConns(inner, 1)
		accepted := make(chan net.Conn)
		go func() {
			defer close(accepted)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- c
			}
		}()
		dial := func() net.Conn {
			var d net.Dialer
			c, err := d.DialContext(t.Context(), "tcp", inner.Addr().String())
			require.NoError(t, err)
			return c
		}
		a, b := dial(), dial()
		first := <-accepted
		select {
		case <-accepted:
			t.Fatal("a second connection was taken while the first was open")
		default:
		}
		require.NoError(t, first.Close())
		require.Error(t, first.Close(), "a second close gives back no second slot")
		second := <-accepted
		require.NoError(t, second.Close())
		require.NoError(t, l.Close())
		<-accepted
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	})
	t.Run("HeadersOverTheCapAreRefused", func(t *testing.T) {
		l := listenTCP(t)
		s := NewServer(l, http.NotFoundHandler(), 4, zap.NewNop())
		done := make(chan error, 1)
		go func() { done <- s.Serve() }()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
		require.NoError(t, err)
		r.Header.Set("X-Big", strings.Repeat("x", 2*headerBytes))
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.NoError(t, s.Stop(t.Context()))
		require.NoError(t, <-done)
	})
}

func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}
