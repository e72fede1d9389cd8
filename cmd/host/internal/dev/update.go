package dev

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/longshore/longshore/cmd/host/internal/build"
	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/internal/config"
)

// commandKey tells build commands apart.
func commandKey(k config.Consumer) string { return strings.Join(k.Build, "\x00") }

// built returns the indices of those consumers with a build command which are asked for, and of those with the same command.
func (s *session) built(asked func(int) bool) []int {
	commands := map[string]bool{}
	for i, k := range s.Plan.Consumers {
		if k.Build != nil && asked(i) {
			commands[commandKey(k)] = true
		}
	}
	var all []int
	for i, k := range s.Plan.Consumers {
		if k.Build != nil && commands[commandKey(k)] {
			all = append(all, i)
		}
	}
	return all
}

// update builds consumers, each command once, and deploys what is new.
func (s *session) update(ctx context.Context, build []int) {
	done := map[string]bool{}
	for _, i := range build {
		k := s.Plan.Consumers[i]
		if key := commandKey(k); !done[key] && ctx.Err() == nil {
			done[key] = true
			s.failed[key] = !s.build(ctx, k)
		}
	}
	if ctx.Err() == nil {
		s.deploy(ctx, build)
	}
}

// build runs a build command, says what it says, and reports whether it did its work.
func (s *session) build(ctx context.Context, k config.Consumer) bool {
	var names []string
	var all []config.Consumer
	for _, other := range s.Plan.Consumers {
		if slices.Equal(other.Build, k.Build) {
			names, all = append(names, other.Name), append(all, other)
		}
	}
	s.Talk.say("%s: building", strings.Join(names, ", "))
	bounded, cancel := context.WithTimeoutCause(ctx, s.BuildTime, fmt.Errorf("it took longer than %s", s.BuildTime))
	defer cancel()
	out := &output{talk: s.Talk}
	err := build.Run(bounded, k.Module.Dir, k.Build, out)
	out.end()
	if err == nil || ctx.Err() != nil {
		return err == nil
	}
	if exit := new(exec.ExitError); bounded.Err() == nil && errors.As(err, &exit) {
		err = exit // the command is the manifest's, and long
	}
	for _, other := range all {
		s.Talk.say("%s: the build failed (%v): %s", other.Name, err, s.meanwhile(other))
	}
	return false
}

// meanwhile says what a consumer does whose new version can't run.
func (s *session) meanwhile(k config.Consumer) string {
	if s.of(k).running {
		return "the version before keeps running"
	}
	return "it runs when that is mended"
}

// deploy gives the host every consumer with the newest module that is whole, and says what became of it. Of those that were
// built it says so too if nothing changed.
func (s *session) deploy(ctx context.Context, built []int) {
	sources := make([]rollout.Source, len(s.Plan.Consumers))
	for i, k := range s.Plan.Consumers {
		sources[i] = rollout.Source{Consumer: k, Wasm: s.module(k, slices.Contains(built, i))}
	}
	outcomes, err := s.Deploy(ctx, sources)
	if err != nil {
		if ctx.Err() == nil {
			s.Report(err)
			s.Talk.say("nothing is deployed: what ran before keeps running")
		}
		return
	}
	for i, o := range outcomes {
		s.tell(sources[i], o, slices.Contains(built, i))
	}
}

// tell says what became of a source.
func (s *session) tell(v rollout.Source, o rollout.Outcome, built bool) {
	name, state := v.Consumer.Name, s.of(v.Consumer)
	switch {
	case o.Refused != nil:
		sum := sha256.Sum256(v.Wasm)
		state.refused = &sum
		s.Report(faults(o.Refused))
		s.Talk.say("%s: %s", name, s.meanwhile(v.Consumer))
	case o.New:
		s.Talk.say("%s: runs with module %.12s", name, o.Digest)
	case built && v.Wasm != nil && state.running:
		s.Talk.say("%s: the module is as it was", name)
	}
	state.running = o.Digest != ""
}

// module returns a consumer's module as it is on disk, or nil if it is not to be deployed: its last build failed, it can't be
// read, or it was refused before. One that is gone by now is no fault, if a build will make it again.
func (s *session) module(k config.Consumer, built bool) []byte {
	if slices.ContainsFunc(s.Plan.Consumers, func(maker config.Consumer) bool {
		return maker.Module.File() == k.Module.File() && maker.Build != nil && s.failed[commandKey(maker)]
	}) {
		return nil
	}
	state := s.of(k)
	wasm, err := k.ReadModule()
	if err != nil {
		again := k.Build != nil && !built && state.running
		if !again && state.said != err.Error() {
			state.said = err.Error()
			s.Report(faults(err))
			s.Talk.say("%s: %s", k.Name, s.meanwhile(k))
		}
		return nil
	}
	state.said = ""
	if state.refused != nil && *state.refused == sha256.Sum256(wasm) {
		return nil
	}
	return wasm
}

// faults makes a fault of the manifest one of a list, as which such are printed.
func faults(err error) error {
	var fault config.Fault
	if errors.As(err, &fault) {
		return config.Faults{fault}
	}
	return err
}
