package dev

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
)

// Options is what Run needs. All fields but Ignored and BuildTime are required.
type Options struct {
	Plan *config.Plan                 // as the manifest says now
	Load func() (*config.Plan, error) // reads the manifest again
	// Deploy makes these the consumers of the host, and says what became of each. After an error they are those of before.
	Deploy   func(ctx context.Context, sources []rollout.Source) ([]rollout.Outcome, error)
	Talk     *Talk
	Report   func(err error) // says an error on Talk
	HostFile string          // the host config; it need not be there
	Ignored  []string        // files and folders that are no sources, such as the data folder

	BuildTime time.Duration // that one build command may take; 0 is limits.BuildDuration
}

// session is one run.
type session struct {
	Options
	manifest, hostFile string // absolute paths
	watcher            *watcher
	seen               files
	sources            sources
	made               map[string]bool // modules that some build command makes, or made, by path
	outputs            map[string]bool // files that builds write, as it seems
	failed             map[string]bool // builds that failed last, by commandKey
	states             map[id]*state
}

// id tells consumers apart.
type id struct{ tenant, name string }

func idOf(k config.Consumer) id { return id{k.Tenant, k.Name} }

// state is what is known of a consumer, whatever its entry says.
type state struct {
	running bool
	said    string             // the last fault of its module's file, as long as it lasts
	refused *[sha256.Size]byte // digest of the module that the host refused last, since the manifest changed
}

// of returns the state of a consumer.
func (s *session) of(k config.Consumer) *state {
	if s.states[idOf(k)] == nil {
		s.states[idOf(k)] = &state{}
	}
	return s.states[idOf(k)]
}

// Run builds and deploys the consumers of a plan, and then whatever changes in it and in their sources, until ctx is done. Its
// error says why it can't begin.
func Run(ctx context.Context, o Options) error {
	s, err := newSession(o)
	if err != nil {
		return err
	}
	s.watcher = newWatcher(func(err error) {
		s.Talk.say("the system can't watch the sources (%v): they are looked at every %s instead", err, limits.WatchPoll)
	})
	defer s.watcher.close()
	if err := s.begin(ctx); err != nil {
		return err
	}
	for s.watcher.wait(ctx) == nil {
		s.follow(ctx)
	}
	return nil
}

// newSession returns a session that has no watcher yet.
func newSession(o Options) (*session, error) {
	s := &session{
		Options: o, made: map[string]bool{}, outputs: map[string]bool{}, failed: map[string]bool{}, states: map[id]*state{},
	}
	if s.BuildTime == 0 {
		s.BuildTime = limits.BuildDuration
	}
	return s, s.findFiles()
}

// findFiles makes the paths absolute, as those of a look are.
func (s *session) findFiles() (err error) {
	if s.manifest, err = filepath.Abs(s.Plan.File); err != nil {
		return fmt.Errorf("find the manifest: %w", err)
	}
	if s.hostFile, err = filepath.Abs(s.HostFile); err != nil {
		return fmt.Errorf("find the host config: %w", err)
	}
	for i, path := range s.Ignored {
		if s.Ignored[i], err = filepath.Abs(path); err != nil {
			return fmt.Errorf("find what is no source: %w", err)
		}
	}
	s.take(s.Plan)
	return nil
}

// take makes a plan the one that is followed.
func (s *session) take(plan *config.Plan) {
	s.Plan, s.sources = plan, newSources(filepath.Dir(s.manifest), plan)
	for _, k := range plan.Consumers {
		if k.Build != nil {
			s.made[k.Module.File()] = true
		}
	}
}

// begin builds and deploys everything.
func (s *session) begin(ctx context.Context) error {
	if _, err := s.look(ctx); err != nil {
		return err
	}
	s.update(ctx, s.built(func(int) bool { return true }))
	s.followBuilds(ctx)
	if ctx.Err() == nil {
		s.Talk.say("watching %s in %s; Ctrl-C stops", counted(len(s.seen), "file"), strings.Join(s.sources.trees(), ", "))
	}
	return nil
}

// follow does what follows from changes since the last look.
func (s *session) follow(ctx context.Context) {
	paths, err := s.look(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.Report(err)
		}
		return
	}
	for _, path := range paths {
		delete(s.outputs, path)
	}
	if s.react(ctx, paths) {
		s.followBuilds(ctx)
	}
}

// followBuilds does what follows from changes that happened during a build, and then during that which followed.
func (s *session) followBuilds(ctx context.Context) {
	for inARow := 1; ctx.Err() == nil; inARow++ {
		paths, err := s.look(ctx)
		if err != nil {
			return // the next look will say so
		}
		paths = slices.DeleteFunc(paths, func(path string) bool { return s.outputs[path] })
		if inARow == limits.BuildsInARow {
			paths = s.takeForOutputs(paths)
		}
		if len(paths) == 0 || !s.react(ctx, paths) {
			return
		}
	}
}

// takeForOutputs ends a row of builds, of which each followed from the one before. It returns what can be no output.
func (s *session) takeForOutputs(paths []string) []string {
	var rest, outputs []string
	for _, path := range paths {
		if path == s.manifest || path == s.hostFile {
			rest = append(rest, path)
			continue
		}
		s.outputs[path] = true
		outputs = append(outputs, path)
	}
	if len(outputs) > 0 {
		s.Talk.say("%s changed during %d builds in a row: that is taken for what the build writes, until it changes while nothing is built",
			s.names(outputs), limits.BuildsInARow)
	}
	return rest
}

// look returns what changed since the last look.
func (s *session) look(ctx context.Context) ([]string, error) {
	scan := scanner{ignored: map[string]bool{}, enter: s.watcher.add, maxFolders: limits.SourceFolders, maxFiles: limits.SourceFiles}
	for _, path := range s.Ignored {
		scan.ignored[path] = true
	}
	maps.Copy(scan.ignored, s.made)
	now, err := scan.scan(ctx, s.sources.trees(), s.seen)
	if err != nil {
		return nil, err
	}
	paths := slices.DeleteFunc(changed(s.seen, now), func(path string) bool { return scan.ignored[path] }) // since the manifest changed
	s.seen = now
	return paths, nil
}

// react does what follows from changes, and reports whether anything was built.
func (s *session) react(ctx context.Context, paths []string) bool {
	if len(paths) == 0 {
		return false
	}
	if slices.Contains(paths, s.hostFile) {
		s.Talk.say("%s changed: that counts when `longshore dev` is started again", s.names([]string{s.hostFile}))
	}
	var another func(int) bool
	if slices.Contains(paths, s.manifest) {
		another = s.reload()
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return path == s.manifest || path == s.hostFile })
	build := s.built(func(i int) bool {
		return another != nil && another(i) || slices.ContainsFunc(paths, func(path string) bool { return s.sources.belongs(path, i) })
	})
	if len(build) > 0 && len(paths) > 0 {
		s.Talk.say("%s changed", s.names(paths))
	}
	s.update(ctx, build)
	return len(build) > 0
}

// reload reads the manifest again, and says which of its entries are built otherwise than before, or are new. If the manifest
// is faulty the plan stays.
func (s *session) reload() (another func(int) bool) {
	plan, err := s.Load()
	if err != nil {
		s.Report(err)
		s.Talk.say("the manifest is not applied: what it said before holds")
		return nil
	}
	before := s.Plan.Consumers
	s.take(plan)
	for _, k := range before {
		s.of(k).said, s.of(k).refused = "", nil
		if !slices.ContainsFunc(plan.Consumers, func(now config.Consumer) bool { return idOf(now) == idOf(k) }) {
			s.Talk.say("%s: the manifest doesn't name it any more: it stops", k.Name)
			delete(s.states, idOf(k))
		}
	}
	return func(i int) bool {
		now := plan.Consumers[i]
		return !slices.ContainsFunc(before, func(k config.Consumer) bool {
			return idOf(k) == idOf(now) && k.Module.Path == now.Module.Path && slices.Equal(k.Build, now.Build)
		})
	}
}

// names returns how files are called from the manifest's folder: the first, and how many more there are.
func (s *session) names(paths []string) string {
	name := paths[0]
	if relative, err := filepath.Rel(s.sources.root, name); err == nil {
		name = relative
	}
	if more := len(paths) - 1; more > 0 {
		name += " and " + counted(more, "other file")
	}
	return name
}

// counted writes a number of things, as "1 file" and "2 files".
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}
