// Package images_test builds the consumer of this example from source and runs images through the real runtime.
package images_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestImages(t *testing.T) {
	consumer := guestbuild.Consumers(t, guestbuild.C, ".")["images"]
	picture := image.NewPaletted(image.Rect(0, 0, 640, 48), color.Palette{color.Black, color.White})
	encoders := map[string]func(io.Writer) error{
		"image/png":  func(w io.Writer) error { return png.Encode(w, picture) },
		"image/gif":  func(w io.Writer) error { return gif.Encode(w, picture, nil) },
		"image/jpeg": func(w io.Writer) error { return jpeg.Encode(w, picture, nil) },
	}
	for contentType, encode := range encoders {
		t.Run("TheSizeOfAnImageIsPublished/"+contentType, func(t *testing.T) {
			var file bytes.Buffer
			require.NoError(t, encode(&file))
			o, out := consumer.Deliver(t, messaging.Message{Data: file.Bytes()})
			require.Equal(t, messaging.AnswerAck, o.Answers[0].Case)
			require.Len(t, out, 1)
			require.Equal(t, "uploads/metadata", out[0].Topic)
			require.JSONEq(t, `{"id":"m-1","type":"`+contentType+`","width":640,"height":48}`, string(out[0].Message.Data))
		})
		t.Run("WhatIsCutOffIsRejected/"+contentType, func(t *testing.T) {
			var file bytes.Buffer
			require.NoError(t, encode(&file))
			for n := range 10 {
				requireRejected(t, consumer, file.Bytes()[:n])
			}
		})
	}
	t.Run("WhatIsNoImageIsRejected", func(t *testing.T) {
		for _, text := range []string{"", "GIF90a, or not?", "%PDF-1.7", "\xff\xd8\xff\xe0\x00\x00aaaaaaa", "\xff\xd8\xff\xe0\xff\xffaaaaaaa"} {
			requireRejected(t, consumer, []byte(text))
		}
	})
}

func requireRejected(t *testing.T, c *guestbuild.Consumer, data []byte) {
	t.Helper()
	o, out := c.Deliver(t, messaging.Message{Data: data})
	require.Equal(t, runtime.OK, o.Class, o.Reason())
	require.Equal(t, messaging.Answer{Case: messaging.AnswerReject, Text: "neither PNG, GIF nor JPEG"}, o.Answers[0])
	require.Empty(t, out)
}
