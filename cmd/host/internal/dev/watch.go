package dev

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/longshore/longshore/limits"
)

// watcher says when something changed in folders. Where the system can't watch, it says so every limits.WatchPoll.
type watcher struct {
	system  *fsnotify.Watcher // nil: it can't
	failed  func(error)       // is told once that the system can't watch, and why
	notices chan struct{}     // holds one if there were any
	ended   chan struct{}
}

// newWatcher starts to watch nothing. Close it.
func newWatcher(failed func(error)) *watcher {
	w := &watcher{failed: failed, notices: make(chan struct{}, 1), ended: make(chan struct{})}
	system, err := fsnotify.NewWatcher()
	if err != nil {
		close(w.ended)
		failed(err)
		return w
	}
	w.system = system
	go w.forward(system)
	return w
}

// forward makes one notice of many, until the system's watcher is closed.
func (w *watcher) forward(system *fsnotify.Watcher) {
	defer close(w.ended)
	notice := func() {
		select {
		case w.notices <- struct{}{}:
		default:
		}
	}
	events, faults := system.Events, system.Errors
	for events != nil || faults != nil {
		select {
		case e, open := <-events:
			if !open {
				events = nil
			} else if e.Op != fsnotify.Chmod {
				notice()
			}
		case _, open := <-faults:
			if !open {
				faults = nil
			} else {
				notice() // notices were lost: looking finds what they were of
			}
		}
	}
}

// add watches a folder, but not what lies in folders in it. To add one twice is to add it once.
func (w *watcher) add(folder string) {
	if w.system == nil {
		return
	}
	err := w.system.Add(folder)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return // it is gone by now, or nobody's source
	}
	w.close()
	w.system = nil
	w.failed(err)
}

// wait returns when something has changed and then nothing more for limits.WatchQuiet, or when changes went on for
// limits.WatchStorm. Its error is that of ctx.
func (w *watcher) wait(ctx context.Context) error {
	if w.system == nil {
		return sleep(ctx, limits.WatchPoll)
	}
	select {
	case <-w.notices:
		return quiet(ctx, w.notices)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// quiet waits until there are no more notices.
func quiet(ctx context.Context, notices <-chan struct{}) error {
	storm := time.NewTimer(limits.WatchStorm)
	defer storm.Stop()
	pause := time.NewTimer(limits.WatchQuiet)
	defer pause.Stop()
	for {
		select {
		case <-notices:
			pause.Reset(limits.WatchQuiet)
		case <-pause.C:
			return nil
		case <-storm.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the watching, and returns when it has ended.
func (w *watcher) close() {
	if w.system != nil {
		_ = w.system.Close() // nothing is lost by it
	}
	<-w.ended
}
