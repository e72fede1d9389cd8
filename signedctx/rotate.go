package signedctx

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/longshore/longshore/limits"
)

// Errors of Folder.Retire.
var (
	ErrNoKey    = errors.New("no key file has this id")
	ErrKeySigns = errors.New("the key signs: rotate first")
)

// retiredSuffix follows the name of a retired key's file.
const retiredSuffix = ".retired"

// KeyLifetime is how long what a key signed may still come to be used after another took its place: a token's window with its
// leeway. A key is not retired before.
const KeyLifetime = limits.TokenWindow + limits.TokenLeeway

// Rotate makes a new key of a kind and returns its id. It signs from the next Load on; the ones before it verify. Two
// processes that rotate at once make one key.
func (f Folder) Rotate(kind Kind) (id string, err error) {
	err = f.within(kind, func(root *os.Root, files []keyFile) error {
		if files, err = add(root, kind, f.algorithm(kind), files); err == nil {
			id = signerOf(files).ID
		}
		return err
	})
	return id, err
}

// Retire takes a key out of use: from the next Load on it verifies nothing. Its file is kept under a name that ends in
// .retired, so that it can be put back; delete that file when the key has leaked. Whether anything still names the key is
// the caller's to know: see KeysOf. It refuses with ErrNoKey, and ErrKeySigns.
func (f Folder) Retire(kind Kind, id string) error {
	return f.within(kind, func(root *os.Root, files []keyFile) error {
		for _, k := range files {
			if k.ID != id {
				continue
			}
			if signer := signerOf(files); signer != nil && signer.ID == id {
				return ErrKeySigns
			}
			return errors.Join(root.Rename(k.name, k.name+retiredSuffix), syncDir(root))
		}
		return ErrNoKey
	})
}

// within calls change with the keys of a kind.
func (f Folder) within(kind Kind, change func(*os.Root, []keyFile) error) error {
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	defer func() { _ = root.Close() }()
	files, err := load(root, kind)
	if err == nil {
		err = change(root, files)
	}
	if err != nil {
		return fmt.Errorf("keys in %s: %w", f.Dir, err)
	}
	return nil
}

// KeysOf returns the ids of the keys that an envelope names, without verifying it. One that can't be read names none: no key
// verifies it.
func KeysOf(sealed []byte) (token, seal string) {
	e, err := decodeEnvelope(sealed)
	if err != nil {
		return "", ""
	}
	header, _, _ := strings.Cut(string(e.token), ".")
	if _, token, err = parseHeader(header); err != nil {
		return "", ""
	}
	return token, string(e.keyID)
}
