package substrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// The environment of the proofs.
const (
	proofChildEnv   = "LONGSHORE_PROOF_PROGRAM" // the plan of a child
	proofSecondsEnv = "PROOF_SECONDS"           // how long each proof may take
	proofSeedEnv    = "PROOF_SEED"              // runs a proof again
	proofLongEnv    = "LONG"                    // if set, proofs take the sizes that take long
)

// TestChildOfAProof is the program that the proofs run beside themselves, and kill. By itself it does nothing.
func TestChildOfAProof(t *testing.T) {
	plan := os.Getenv(proofChildEnv)
	if plan == "" {
		t.Skip("it is run by the proofs")
	}
	var p proofPlan
	require.NoError(t, json.Unmarshal([]byte(plan), &p))
	report := &proofReport{to: os.NewFile(3, "report")}
	if p.Trace {
		require.NoError(t, traceFileSyncs())
	}
	switch p.Role {
	case "work":
		proofWork(t, &p, report)
	case "audit":
		if err := skipFileSyncs(); err != nil {
			t.Log("an audit that syncs takes longer: ", err) // nobody cuts its power
		}
		proofAudit(t, &p, report)
	case "full":
		proofFull(t, &p, report)
	default:
		require.Fail(t, "no such role", p.Role)
	}
}

// proofUntil returns until when a proof runs: for PROOF_SECONDS, or a few seconds.
func proofUntil(t *testing.T) time.Time {
	t.Helper()
	seconds := 3
	if testing.Short() {
		seconds = 1
	}
	if s := os.Getenv(proofSecondsEnv); s != "" {
		var err error
		seconds, err = strconv.Atoi(s)
		require.NoError(t, err, proofSecondsEnv)
	}
	return time.Now().Add(time.Duration(seconds) * time.Second)
}

// proofSeed returns the seed of a proof, and prints it if the proof fails.
func proofSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(proofSeedEnv); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, proofSeedEnv)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run it again with %s=%d", proofSeedEnv, seed)
		}
	})
	return seed
}

// figure prints a figure where the collector finds it.
func figure(name string, value any) { fmt.Printf("figure %s %v\n", name, value) }

// proofCommand returns the command line and the environment of a child.
func proofCommand(t *testing.T, p proofPlan) (args, env []string) {
	t.Helper()
	if p.Segment == 0 {
		p.Segment = testSegment
	}
	plan, err := json.Marshal(p)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	return []string{self, "-test.run=^TestChildOfAProof$", "-test.timeout=1h"}, append(os.Environ(), proofChildEnv+"="+string(plan))
}

// proofChild is a running child.
type proofChild struct {
	cmd    *exec.Cmd
	output *strings.Builder
	read   chan error // one, once the report has ended
}

// startProof starts a child, and gives each line of its report to take, on another goroutine.
func startProof[T any](t *testing.T, p proofPlan, take func(T)) *proofChild {
	t.Helper()
	c, err := launchChild(t, p, nil, take)
	require.NoError(t, err)
	return c
}

// launchChild does so with attributes of the process.
func launchChild[T any](t *testing.T, p proofPlan, with func(*syscall.SysProcAttr), take func(T)) (*proofChild, error) {
	t.Helper()
	args, env := proofCommand(t, p)
	from, to, err := os.Pipe()
	require.NoError(t, err)
	c := &proofChild{output: &strings.Builder{}, read: make(chan error, 1)}
	c.cmd = exec.CommandContext(t.Context(), args[0], args[1:]...)
	c.cmd.Env, c.cmd.ExtraFiles = env, []*os.File{to}
	c.cmd.Stdout, c.cmd.Stderr = c.output, c.output
	if with != nil {
		c.cmd.SysProcAttr = &syscall.SysProcAttr{}
		with(c.cmd.SysProcAttr)
	}
	started := c.cmd.Start()
	require.NoError(t, to.Close())
	if started != nil {
		return nil, errors.Join(started, from.Close())
	}
	go func() {
		c.read <- readProofLines(from, take)
		_ = from.Close()
	}()
	return c, nil
}

// wait waits until the child and its report have ended.
func (c *proofChild) wait(t *testing.T) error {
	t.Helper()
	ended := c.cmd.Wait()
	require.NoError(t, <-c.read)
	return ended
}

// kill kills the child with SIGKILL.
func (c *proofChild) kill(t *testing.T) {
	t.Helper()
	_ = c.cmd.Process.Kill() // it may have ended by itself: then its report says why
	_ = c.wait(t)
}

// auditTimeout is what one folder may take at most.
const auditTimeout = time.Minute

// audit opens folders in a child, one after the other, and returns what is in each. If the child dies of one of them, that
// one's Fault says how, and another child goes on.
func audit(t *testing.T, p proofPlan, dirs ...string) []proofFindings {
	t.Helper()
	var all []proofFindings
	for len(all) < len(dirs) {
		p.Role, p.Dirs = "audit", dirs[len(all):]
		alive := make(chan struct{}, 2*limits.KiB)
		var begun []string
		c := startProof(t, p, func(f proofFindings) {
			if f.End {
				all = append(all, f)
			} else {
				begun = append(begun, f.Dir)
			}
			alive <- struct{}{}
		})
		ended := make(chan error, 1)
		go func() { ended <- c.cmd.Wait() }()
		err := awaitAudit(c, alive, ended)
		require.NoError(t, <-c.read)
		if len(all) == len(dirs) {
			break
		}
		require.NotEmpty(t, begun, "the audit did not begin: %v %s", err, c.output)
		all = append(all, proofFindings{Dir: dirs[len(all)], End: true, Fault: fmt.Sprintf("the process ended: %v: %s", err, c.output)})
	}
	return all
}

// awaitAudit waits for the end of a child that shows signs of life.
func awaitAudit(c *proofChild, alive <-chan struct{}, ended <-chan error) error {
	for {
		select {
		case <-alive:
		case err := <-ended:
			return err
		case <-time.After(auditTimeout):
			_ = c.cmd.Process.Kill()
			return fmt.Errorf("it hung: %w", <-ended)
		}
	}
}
