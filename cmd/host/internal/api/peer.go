package api

import (
	"context"
	"fmt"
	"net"
	"syscall"
)

// peerKey is the context key of the user at the other end of an admin connection.
type peerKey struct{}

// peer is what the kernel says about the other end.
type peer struct {
	uid uint32
	err error
}

// withPeer is the ConnContext of the admin server: it asks the kernel once a connection who is at the other end.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	var p peer
	p.uid, p.err = connUID(c)
	return context.WithValue(ctx, peerKey{}, p)
}

// localSubject returns the subject of whoever sent a request over the admin socket: "local:<uid>".
func localSubject(ctx context.Context) (string, error) {
	p, ok := ctx.Value(peerKey{}).(peer)
	if !ok {
		return "", fmt.Errorf("the connection is no Unix socket, so its user is not known")
	}
	if p.err != nil {
		return "", fmt.Errorf("who is at the other end of the socket: %w", p.err)
	}
	return fmt.Sprintf("local:%d", p.uid), nil
}

func connUID(c net.Conn) (uint32, error) {
	for {
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = inner.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("a %T has no file descriptor", c)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("file descriptor: %w", err)
	}
	var uid uint32
	var uidErr error
	if err := raw.Control(func(fd uintptr) { uid, uidErr = socketUID(int(fd)) }); err != nil {
		return 0, fmt.Errorf("file descriptor: %w", err)
	}
	return uid, uidErr
}
