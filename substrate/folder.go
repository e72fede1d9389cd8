package substrate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// makeFolders makes the folders of a log, and their names durable: files that are synced into a folder whose own name is
// not on the disk may be lost with it.
func makeFolders(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, "journal"), filepath.Join(dir, "store")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("log: %w", err)
		}
		if err := syncFolder(filepath.Dir(d)); err != nil {
			return fmt.Errorf("log: sync the folder of %s: %w", d, err)
		}
	}
	return nil
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
