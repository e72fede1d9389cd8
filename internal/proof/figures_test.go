package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFigures(t *testing.T) {
	collect := func(output ...string) (figures, string) {
		f, out := figures{}, &strings.Builder{}
		w := f.watch(out)
		for _, piece := range output {
			n, err := w.Write([]byte(piece))
			require.NoError(t, err)
			require.Len(t, piece, n)
		}
		return f, out.String()
	}

	t.Run("OfOneNameAreAddedUpAndRatiosAreNot", func(t *testing.T) {
		f, rest := collect("=== RUN x\nfigure kills 2\nfig", "ure kills 3\nfigure disk 1.5\nfigure disk 1.25\nok\n")
		require.Equal(t, figures{"kills": 5, "disk": 1.5}, f)
		require.Equal(t, "=== RUN x\nok\n", rest)
		var out strings.Builder
		f.print(&out)
		require.Equal(t, "figure disk 1.5\nfigure kills 5\n", out.String())
	})

	t.Run("ThatMustBeZeroAreBrokenIfTheyAreNot", func(t *testing.T) {
		f, _ := collect("figure acked_lost 0\nfigure acked_redelivered 1\nfigure kills 3\n")
		require.Equal(t, []string{"acked_redelivered"}, f.broken())
	})

	t.Run("AreNotTakenFromLinesOfAnotherForm", func(t *testing.T) {
		f, _ := collect("figure kills\nfigure kills many\nfigure of speech 3\n    figure kills 3\n")
		require.Empty(t, f)
	})
}
