package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// addBackup registers what copies the log. It is every tenant's, and so the operator's alone.
func (a *admin) addBackup() {
	huma.Register(a.api, huma.Operation{
		OperationID: "backup", Method: http.MethodGet, Path: "/admin/v1/backup",
		Summary: "The log as of one moment, as a stream that restore takes",
		Responses: map[string]*huma.Response{"200": {
			Description: "OK. A stream that breaks off is no backup.",
			Content:     map[string]*huma.MediaType{wire.BackupContentType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
		}},
	}, func(context.Context, *none) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(ctx huma.Context) { a.sendBackup(humago.Unwrap(ctx)) }}, nil
	})
}

// sendBackup answers with a backup, or with a problem if there is none. If it fails once it was begun, the connection is
// cut.
func (a *admin) sendBackup(r *http.Request, w http.ResponseWriter) {
	began := time.Now()
	out := &backupAnswer{w: w, control: http.NewResponseController(w)}
	info, err := a.Log.Backup(r.Context(), out)
	switch {
	case err == nil:
		a.Logger.Info("backup taken", zap.Uint64("frame", info.Frame), zap.Int64("bytes", info.Bytes),
			zap.Uint64("damaged_records", info.Damaged), zap.Duration("took", time.Since(began)))
	case !out.began:
		writeProblem(w, problemOf(a.Logger, err))
	default:
		a.Logger.Warn("backup broken off", zap.Error(err))
		panic(http.ErrAbortHandler)
	}
}

// backupAnswer writes a backup for as long as it takes: the time that a connection has for writing is that of each piece.
type backupAnswer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	began   bool
}

// Write implements io.Writer.
func (b *backupAnswer) Write(p []byte) (int, error) {
	if !b.began {
		b.began = true
		h := b.w.Header()
		h.Set("Content-Type", wire.BackupContentType)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
	}
	if err := b.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return b.w.Write(p)
}
