package signedctx

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The two kinds of keys, as they begin the names of files.
const (
	tokenFiles = "token"
	sealFiles  = "seal"
)

const (
	keySuffix       = ".jwk"
	maxKeyFileBytes = 4096
	firstKeyNumber  = 1
)

// keyFileForm is the name of a key file: kind, number, suffix.
var keyFileForm = regexp.MustCompile(`^(token|seal)-[0-9]{6}\.jwk$`)

// jwk is a private key as JSON Web Key (RFC 7517, 8037).
type jwk struct {
	KeyType   string    `json:"kty"`
	Curve     string    `json:"crv,omitempty"`
	Algorithm Algorithm `json:"alg"`
	ID        string    `json:"kid"`
	Public    string    `json:"x,omitempty"`
	Private   string    `json:"d,omitempty"`
	Symmetric string    `json:"k,omitempty"`
}

// LoadOrCreate reads the keys of a folder, and first makes what is missing: the folder (0700), an Ed25519 token key and
// a seal key. They are on disk when it returns.
//
// Each key is a file of one JSON Web Key, readable by its owner alone, named token-NNNNNN.jwk or seal-NNNNNN.jwk. All
// of them verify; of each kind, the one with the greatest number signs. A token key may be an HS256 key ("kty": "oct").
// Files with other suffixes are ignored. Folders in which others may write are not refused: guard the folder.
func LoadOrCreate(dir string) (*Keyring, error) {
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	defer func() { _ = root.Close() }()
	tokens, err := loadOrCreate(root, tokenFiles, EdDSA)
	if err != nil {
		return nil, fmt.Errorf("keys in %s: %w", dir, err)
	}
	seals, err := loadOrCreate(root, sealFiles, HS256)
	if err != nil {
		return nil, fmt.Errorf("keys in %s: %w", dir, err)
	}
	keys, err := NewKeyring(tokens, seals)
	if err != nil {
		return nil, fmt.Errorf("keys in %s: %w", dir, err)
	}
	return keys, nil
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

// loadOrCreate returns the keys of a kind, oldest first; if there is none, it makes one.
func loadOrCreate(root *os.Root, kind string, a Algorithm) ([]Key, error) {
	keys, err := load(root, kind)
	if err != nil || len(keys) > 0 {
		return keys, err
	}
	key, err := GenerateKey(a)
	if err != nil {
		return nil, err
	}
	if err := create(root, fmt.Sprintf("%s-%06d%s", kind, firstKeyNumber, keySuffix), key); err != nil {
		return nil, err
	}
	return load(root, kind)
}

// load reads the keys of a kind in the order of their numbers.
func load(root *os.Root, kind string) ([]Key, error) {
	entries, err := fs.ReadDir(root.FS(), ".") // sorted
	if err != nil {
		return nil, err
	}
	var keys []Key
	for _, e := range entries {
		name := e.Name()
		if filepath.Ext(name) != keySuffix {
			continue
		}
		if !keyFileForm.MatchString(name) {
			return nil, fmt.Errorf("%.80q: name a key file token-NNNNNN.jwk or seal-NNNNNN.jwk, with six digits", name)
		}
		if !strings.HasPrefix(name, kind+"-") {
			continue
		}
		key, err := readKey(root, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		keys = append(keys, key)
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

func newJWK(k Key) jwk {
	if k.Algorithm == EdDSA {
		private := ed25519.NewKeyFromSeed(k.Secret)
		public := private[ed25519.SeedSize:]
		return jwk{
			KeyType: "OKP", Curve: "Ed25519", Algorithm: k.Algorithm, ID: k.ID,
			Public: encodeSegment(public), Private: encodeSegment(k.Secret),
		}
	}
	return jwk{KeyType: "oct", Algorithm: k.Algorithm, ID: k.ID, Symmetric: encodeSegment(k.Secret)}
}

// parseKey reads a JSON Web Key, of exactly the members that newJWK writes. Errors don't quote it.
func parseKey(raw []byte) (Key, error) {
	o, err := parseObject(raw)
	if err != nil {
		return Key{}, err
	}
	members, secret := []string{"kty", "alg", "kid", "k"}, "k"
	if o["kty"] == "OKP" {
		members, secret = []string{"kty", "crv", "alg", "kid", "x", "d"}, "d"
	}
	if err := o.only(members...); err != nil {
		return Key{}, err
	}
	text := make(map[string]string, len(members))
	for _, name := range members {
		if text[name], err = o.text(name); err != nil {
			return Key{}, err
		}
	}
	k := Key{ID: text["kid"], Algorithm: Algorithm(text["alg"])}
	if k.Secret, err = decodeSegment(text[secret]); err != nil {
		return Key{}, fmt.Errorf("%s %w", secret, err)
	}
	if err := k.check(); err != nil {
		return Key{}, err
	}
	if want := newJWK(k); text["kty"] != want.KeyType || text["crv"] != want.Curve || text["x"] != want.Public {
		return Key{}, errors.New("kty, crv and x must agree with alg and the private key")
	}
	return k, nil
}

// encodeSegment encodes in base64url, as JWT and JWK do.
func encodeSegment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
