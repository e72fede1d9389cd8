package signedctx

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	keySuffix       = ".jwk"
	maxKeyFileBytes = 4096
	maxKeyNumber    = 999_999
)

// keyFileForm is the name of a key file: kind, number, suffix.
var keyFileForm = regexp.MustCompile(`^(token|seal)-[0-9]{6}\.jwk$`)

// Folder is where the keys of a host are.
//
// Each key is a file of one JSON Web Key, readable by its owner alone, named token-NNNNNN.jwk or seal-NNNNNN.jwk. All
// of them verify; of each kind, the one with the greatest number that has a secret signs. An HS256 key is of the type
// "oct"; a key of Ed25519 without "d" only verifies. Files with other suffixes are ignored. Folders in which others may
// write are not refused: guard the folder.
type Folder struct {
	Dir string
	// Token and Seal are the algorithms of the keys that sign. "" is any, and a new key's is EdDSA for tokens and HS256 for
	// seals.
	Token, Seal Algorithm
	// Trust names files of JSON Web Key Sets as Keyring.JWKS writes them: the public keys of other hosts of the fleet, which
	// verify.
	Trust []string
}

// LoadOrCreate is Load of a Folder with the default algorithms.
func LoadOrCreate(dir string) (*Keyring, error) { return Folder{Dir: dir}.Load() }

// Load reads the keys, and first makes what is missing: the folder (0700), a token key and a seal key. A key is also made
// where the one that signs is of another algorithm than it should be. They are on disk when it returns.
func (f Folder) Load() (*Keyring, error) {
	if err := makeDir(f.Dir); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	defer func() { _ = root.Close() }()
	tokens, err := f.loadOrCreate(root, TokenKind)
	if err != nil {
		return nil, fmt.Errorf("keys in %s: %w", f.Dir, err)
	}
	seals, err := f.loadOrCreate(root, SealKind)
	if err != nil {
		return nil, fmt.Errorf("keys in %s: %w", f.Dir, err)
	}
	for _, file := range f.Trust {
		trusted, err := readTrusted(file)
		if err != nil {
			return nil, fmt.Errorf("trusted keys in %s: %w", file, err)
		}
		tokens, seals = addTrusted(tokens, trusted[TokenKind]), addTrusted(seals, trusted[SealKind])
	}
	keys, err := NewKeyring(tokens, seals)
	if err != nil {
		return nil, fmt.Errorf("keys in %s: %w", f.Dir, err)
	}
	return keys, nil
}

// algorithm returns the algorithm of a new key of a kind.
func (f Folder) algorithm(kind Kind) Algorithm {
	if kind == TokenKind {
		return cmp.Or(f.Token, EdDSA)
	}
	return cmp.Or(f.Seal, HS256)
}

// suits reports whether a key that signs is of the algorithm that it should be.
func (f Folder) suits(kind Kind, k *keyFile) bool {
	want := f.Token
	if kind == SealKind {
		want = f.Seal
	}
	return want == "" || k.Algorithm == want
}

// addTrusted adds keys of others ahead of our own. Our own are in the set of a whole fleet too: they are left out.
func addTrusted(own, trusted []Key) []Key {
	var all []Key
	for _, k := range trusted {
		ours := slices.ContainsFunc(own, func(o Key) bool {
			return o.ID == k.ID && o.Algorithm == EdDSA && o.check() == nil && bytes.Equal(o.public(), k.Public)
		})
		if !ours {
			all = append(all, k)
		}
	}
	return append(all, own...)
}

// makeDir makes a folder and its parents where they are missing, durably.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(root), root.Close())
}

// syncDir makes the entries of a folder durable.
func syncDir(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// keyFile is a key with the name of its file.
type keyFile struct {
	Key
	name   string
	number int
}

// loadOrCreate returns the keys of a kind, oldest first; if there is none, or the one that signs is of another algorithm, it
// makes one.
func (f Folder) loadOrCreate(root *os.Root, kind Kind) ([]Key, error) {
	files, err := load(root, kind)
	if err != nil {
		return nil, err
	}
	if signer := signerOf(files); len(files) == 0 || signer != nil && !f.suits(kind, signer) {
		if files, err = add(root, kind, f.algorithm(kind), files); err != nil {
			return nil, err
		}
	}
	keys := make([]Key, len(files))
	for i, file := range files {
		keys[i] = file.Key
	}
	return keys, nil
}

// signerOf returns the key that signs, nil if none has a secret.
func signerOf(files []keyFile) *keyFile {
	for i := range slices.Backward(files) {
		if files[i].Secret != nil {
			return &files[i]
		}
	}
	return nil
}

// add makes a new key that signs, and returns all.
func add(root *os.Root, kind Kind, a Algorithm, files []keyFile) ([]keyFile, error) {
	number := 1
	if len(files) > 0 {
		number = files[len(files)-1].number + 1
	}
	if number > maxKeyNumber {
		return nil, fmt.Errorf("%s keys: number %d is taken: rename the key files, in their order", kind, maxKeyNumber)
	}
	key, err := GenerateKey(a)
	if err != nil {
		return nil, err
	}
	if err := create(root, fmt.Sprintf("%s-%06d%s", kind, number, keySuffix), key); err != nil {
		return nil, err
	}
	return load(root, kind)
}

// load reads the keys of a kind in the order of their numbers.
func load(root *os.Root, kind Kind) ([]keyFile, error) {
	entries, err := fs.ReadDir(root.FS(), ".") // sorted
	if err != nil {
		return nil, err
	}
	var keys []keyFile
	for _, e := range entries {
		name := e.Name()
		if filepath.Ext(name) != keySuffix {
			continue
		}
		if !keyFileForm.MatchString(name) {
			return nil, fmt.Errorf("%.80q: name a key file token-NNNNNN.jwk or seal-NNNNNN.jwk, with six digits", name)
		}
		digits, ok := strings.CutPrefix(strings.TrimSuffix(name, keySuffix), string(kind)+"-")
		if !ok {
			continue
		}
		key, err := readKey(root, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		number, err := strconv.Atoi(digits)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		keys = append(keys, keyFile{Key: key, name: name, number: number})
	}
	return keys, nil
}

// readKey reads one key file, and refuses one that others can read.
func readKey(root *os.Root, name string) (Key, error) {
	f, err := root.Open(name)
	if err != nil {
		return Key{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return Key{}, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Key{}, fmt.Errorf("its mode is %#o: others must not read it, set 0600", info.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFileBytes+1))
	if err != nil {
		return Key{}, err
	}
	if len(raw) > maxKeyFileBytes {
		return Key{}, fmt.Errorf("is over %d bytes: not a key", maxKeyFileBytes)
	}
	return parseKey(raw)
}

// create writes a key file whole or not at all, durably. It leaves alone a file that is there already: another process
// made it first.
func create(root *os.Root, name string, k Key) error {
	raw, err := json.Marshal(newJWK(k))
	if err != nil {
		return err
	}
	draft := "." + name + "." + randomID(keyIDBytes)
	if err := writeSynced(root, draft, append(raw, '\n')); err != nil {
		return err
	}
	err = root.Link(draft, name)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, root.Remove(draft), syncDir(root))
}

// writeSynced makes a new file and waits until its content is on disk.
func writeSynced(root *os.Root, name string, content []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
