package journal

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormat pins the bytes: a journal that was written must be readable after an update.
func TestFormat(t *testing.T) {
	page := header{epoch: 2, sequence: 3, first: 4, salt: 5}.page()
	require.Len(t, page, pageBytes)
	require.Equal(t, "6c6f6e677368726a0100000005000000020000000000000003000000000000000400000000000000000000000000000000000000000000000000000092e9a089", hex.EncodeToString(page[:headerBytes]))
	require.Equal(t, page[:headerBytes], page[headerCopy:headerCopy+headerBytes])
	head, version := parsePage(page)
	require.Equal(t, header{epoch: 2, sequence: 3, first: 4, salt: 5}, head)
	require.EqualValues(t, formatVersion, version)

	frame := appendFrame(nil, Frame{Number: 9, Kind: 6, Body: []byte("body")}, 8, 5)
	require.Equal(t, "66e1a4c71b525880090000000000000008000000000000000400000001060000626f647900000000", hex.EncodeToString(frame))
	require.EqualValues(t, len(frame), FrameBytes(4))
}
