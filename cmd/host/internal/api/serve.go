package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"go.uber.org/zap"
)

// Server is one listener with its handler.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// NewServer bounds handler on a listener, which it owns from here on. Over a Unix socket a request knows its user.
func NewServer(l net.Listener, handler http.Handler, connections int, log *zap.Logger) *Server {
	ending := make(chan struct{})
	s := &Server{
		listener: limitConns(l, connections),
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: readHeaderTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    headerBytes,
			ErrorLog:          zap.NewStdLog(log),
		},
	}
	s.http.RegisterOnShutdown(sync.OnceFunc(func() { close(ending) }))
	s.http.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		ctx = context.WithValue(ctx, endingKey{}, ending)
		if l.Addr().Network() == "unix" {
			ctx = withPeer(ctx, c)
		}
		return ctx
	}
	return s
}

// Serve blocks until Stop, and then returns nil.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	}
	return nil
}

// endingKey is under which a request's context has a channel that is closed when the server begins to stop.
type endingKey struct{}

// untilStop returns a context that ends with ctx, that of a request, or when its server begins to stop. It has to be cancelled.
func untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	ending, _ := ctx.Value(endingKey{}).(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ending:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); watch.Wait() }
}

// Stop takes no more requests, ends streams, and waits for what runs until ctx is done; then it cuts that.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop %s: %w", s.listener.Addr(), err), s.http.Close())
	}
	return nil
}

// limitConns returns l with at most n connections open.
func limitConns(l net.Listener, n int) net.Listener {
	return &limitListener{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type limitListener struct {
	net.Listener
	slots  chan struct{} // holds one value for each open connection
	closed chan struct{}
	once   sync.Once
}

// Accept waits for a slot before it takes a connection from the kernel's queue.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitConn{Conn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitConn struct {
	net.Conn
	release func()
}

// NetConn returns the connection inside, as tls.Conn does.
func (c *limitConn) NetConn() net.Conn { return c.Conn }

func (c *limitConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
