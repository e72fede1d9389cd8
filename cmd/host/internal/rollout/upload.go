package rollout

import (
	"io"

	"github.com/longshore/longshore/limits"
)

// Upload takes a module of a tenant: see Store.Put. It ends with the error of Room where the disk gets too full for it.
func (d *Deployer) Upload(tenant, digest string, module io.Reader) error {
	return d.Store.Put(tenant, digest, &roomReader{from: module, room: d.Room})
}

// roomBytes are read between two looks at the disk.
const roomBytes = limits.MiB

// roomReader reads what goes to the disk, for as long as that has room.
type roomReader struct {
	from io.Reader
	room func() error // nil: it always has
	left int          // bytes until it is asked again
}

// Read implements io.Reader.
func (r *roomReader) Read(p []byte) (int, error) {
	if r.room == nil {
		return r.from.Read(p)
	}
	if r.left == 0 {
		if err := r.room(); err != nil {
			return 0, err
		}
		r.left = roomBytes
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}
