package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxSocketPath is what every kernel takes in a sockaddr_un, with its final zero.
const maxSocketPath = 103

// ErrSocketInUse says that another host listens on the admin socket.
var ErrSocketInUse = errors.New("another host is running on this admin socket")

// ListenSocket listens on a Unix socket that only this user may open (0600). A socket that a host left behind when it was
// killed is replaced; one that somebody listens on is ErrSocketInUse; a file that is no socket is left alone.
//
// The caller holds the lock of the data folder, so that two hosts don't replace each other's socket.
func ListenSocket(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("admin socket %s: the path is %d bytes long; the system takes at most %d: set listen.admin to a shorter one",
			path, len(path), maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	// The socket is born in a folder of its own that nobody else can enter, and only moved into place with its final mode.
	private, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	defer func() { _ = os.Remove(private) }()
	return bindAt(ctx, filepath.Join(private, "s"), path)
}

// bindAt listens on temp and renames it to path.
func bindAt(ctx context.Context, temp, path string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", temp)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("admin socket: a %T is no Unix listener", l), l.Close())
	}
	u.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(temp, 0o600), os.Rename(temp, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("admin socket: %w", err), l.Close(), os.Remove(temp))
	}
	return &socketListener{UnixListener: u, path: path}, nil
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	*net.UnixListener
	path string
}

func (l *socketListener) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(l.UnixListener.Close(), err)
}

// removeStale removes the socket of a host that is gone.
func removeStale(ctx context.Context, path string) error {
	stale, err := CheckSocket(ctx, path)
	if err != nil || !stale {
		return err
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	return nil
}

// CheckSocket tells whether there is a socket at path that nobody listens on. If somebody does, that is ErrSocketInUse;
// what is no socket is an error too.
func CheckSocket(ctx context.Context, path string) (stale bool, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("admin socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return false, fmt.Errorf("admin socket %s: there is a file that is no socket; remove it, or set listen.admin to another path", path)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return false, fmt.Errorf("%w: %s; stop that one first, or give this one its own data folder", ErrSocketInUse, path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return true, nil
	default:
		return false, fmt.Errorf("admin socket %s: can't tell whether a host listens there: %w", path, err)
	}
}
