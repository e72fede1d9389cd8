package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASyncCoversEveryLogThatMayHaveChanged(t *testing.T) {
	var before map[string]bool
	for _, step := range []struct {
		names, logs []string
		folder      bool
	}{
		{[]string{"00001.mem", "000001.vlog"}, []string{"00001.mem", "000001.vlog"}, true},
		{[]string{"00001.mem", "000001.vlog"}, []string{"00001.mem", "000001.vlog"}, false},
		{ // the old ones are complete now, and were not synced since
			[]string{"00001.mem", "00002.mem", "000001.vlog", "000002.vlog"},
			[]string{"00001.mem", "00002.mem", "000001.vlog", "000002.vlog"},
			true,
		},
		{[]string{"00001.mem", "00002.mem", "000001.vlog", "000002.vlog"}, []string{"00002.mem", "000002.vlog"}, false},
		{[]string{"00002.mem", "000001.vlog", "000002.vlog"}, []string{"00002.mem", "000002.vlog"}, false},
		{[]string{"00009.mem", "00010.mem", "000002.vlog"}, []string{"00009.mem", "00010.mem", "000002.vlog"}, true},
		{[]string{"00009.mem", "00010.mem", "000002.vlog"}, []string{"00010.mem", "000002.vlog"}, false},
	} {
		logs, folder, covered := due(step.names, before)
		require.Equal(t, step.logs, logs)
		require.Equal(t, step.folder, folder)
		before = covered
	}
}
