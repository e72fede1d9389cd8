package substrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// platter follows what a disk would still have of a folder after a power cut: of each file what it held when it was last
// synced, and of each folder the names that it had then. It learns it from the system calls of the process that writes,
// those that Badger makes included.
type platter struct {
	root    string
	copies  string // folder of the copies of what was synced
	pending map[int]pendingSync
	synced  map[inode]syncedFile
	names   map[string]map[string]inode // of each folder
	deaf    string                      // files whose names end so lose all that is written to them, synced or not
	serial  int
	faults  []error
	blocks  blocks
}

// inode names a file whatever its name. Numbers are used again: the time of birth tells the files apart.
type inode struct {
	number uint64
	sec    int64
	nsec   uint32
}

// pendingSync is a sync that has begun.
type pendingSync struct {
	path   string
	id     inode
	serial int
	copy   string           // of a file
	names  map[string]inode // of a folder
}

type syncedFile struct {
	copy   string
	serial int
}

func newPlatter(root, copies string) *platter {
	return &platter{
		root: root, copies: copies,
		pending: map[int]pendingSync{}, synced: map[inode]syncedFile{}, names: map[string]map[string]inode{},
		blocks: newBlocks(),
	}
}

// observe takes note of a call. path is what it syncs, or "".
func (p *platter) observe(c tracedCall) (path string) {
	if c.number == unix.SYS_UNLINKAT {
		return ""
	}
	if c.after {
		s, ok := p.pending[c.thread]
		delete(p.pending, c.thread)
		if ok && !c.failed {
			p.complete(s)
		}
		return s.path
	}
	path, err := syncedPath(c)
	if err != nil {
		p.fault(err)
		return ""
	}
	if p.deaf != "" && strings.HasSuffix(path, p.deaf) {
		return path
	}
	if path != p.root && !strings.HasPrefix(path, p.root+"/") || strings.HasSuffix(path, " (deleted)") {
		return ""
	}
	p.serial++
	s := pendingSync{path: path, serial: p.serial}
	if err := p.begin(&s); err != nil {
		p.fault(err)
		return path
	}
	p.pending[c.thread] = s
	return path
}

// fault notes an error, but for those of a process that was killed meanwhile, and of files that it had deleted.
func (p *platter) fault(err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		p.faults = append(p.faults, err)
	}
}

// begin copies what a sync that begins now will have made durable when it ends.
func (p *platter) begin(s *pendingSync) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		s.names, err = namesOf(s.path)
		return err
	}
	if s.id, err = inodeOf(s.path); err != nil {
		return err
	}
	s.copy = filepath.Join(p.copies, fmt.Sprint(s.serial))
	return p.blocks.copy(s.path, s.copy)
}

func (p *platter) complete(s pendingSync) {
	if s.names != nil {
		p.names[s.path] = s.names
		return
	}
	old := p.synced[s.id]
	if old.serial > s.serial { // a sync that began later has ended before
		_ = os.Remove(s.copy)
		return
	}
	if old.copy != "" {
		_ = os.Remove(old.copy)
	}
	p.synced[s.id] = syncedFile{s.copy, s.serial}
	p.name(s.path, s.id)
}

// name makes the name of a file durable, as ext4, xfs and btrfs do when they sync a new file. Folders are not so lucky here.
func (p *platter) name(path string, id inode) {
	dir := filepath.Dir(path)
	if p.names[dir] == nil {
		p.names[dir] = map[string]inode{}
	}
	p.names[dir][filepath.Base(path)] = id
}

// syncedPath returns the name of the file or folder that a call is about to sync.
func syncedPath(c tracedCall) (string, error) {
	if c.number != unix.SYS_MSYNC {
		return os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", c.pid, c.args[0]))
	}
	maps := fmt.Sprintf("/proc/%d/maps", c.pid)
	text, err := os.ReadFile(maps)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && from <= c.args[0] && c.args[0] < to {
			_, path, named := strings.Cut(strings.TrimSpace(line), "/")
			if !named {
				return "", errors.New("msync of no file")
			}
			return "/" + path, nil
		}
	}
	if now, err := os.ReadFile(maps); err != nil || len(now) == 0 {
		return "", fmt.Errorf("the process was killed meanwhile: %w", fs.ErrNotExist)
	}
	return "", fmt.Errorf("msync of %#x, which is not mapped", c.args[0])
}

func inodeOf(path string) (inode, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return inode{}, fmt.Errorf("inode of %s: %w", path, err)
	}
	return inode{st.Ino, st.Btime.Sec, st.Btime.Nsec}, nil
}

func namesOf(dir string) (map[string]inode, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := map[string]inode{}
	for _, e := range entries {
		id, err := inodeOf(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names[e.Name()] = id
	}
	return names, nil
}

// cut makes, in to, what a power cut now might leave of the folder, whose process has ended.
func (p *platter) cut(random *rand.Rand, way cutWay, to string) (story string, err error) {
	c := cutting{platter: p, random: random, way: way}
	err = c.folder(p.root, to)
	return c.story.String(), err
}

// cutWay is what becomes of what was written after a sync.
type cutWay int

const (
	cutDrop   cutWay = iota // it is lost
	cutKeep                 // it is written back
	cutPrefix               // up to some byte
	cutPages                // some pages of 4 KiB
	cutMixed                // each file has its own way
	cutWays
)

func (w cutWay) String() string { return [...]string{"drop", "keep", "prefix", "pages", "mixed"}[w] }

type cutting struct {
	*platter
	random *rand.Rand
	way    cutWay
	story  strings.Builder
}

// folder makes the folder dir as it may be.
func (c *cutting) folder(dir, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	present, err := namesOf(dir)
	if err != nil {
		return err
	}
	latest := c.random.IntN(2) == 0 // names that changed since the folder was synced are new, or old
	names := map[string]inode{}
	for name, id := range c.names[dir] {
		if present[name] != id && !latest {
			fmt.Fprintf(&c.story, "%s is back; ", name)
		}
		if present[name] == id || !latest {
			names[name] = id
		}
	}
	for name, id := range present {
		if durable, is := c.names[dir][name]; latest || is && durable == id {
			names[name] = id
		} else if !is {
			fmt.Fprintf(&c.story, "%s is missing; ", name)
		}
	}
	for name, id := range names {
		path := filepath.Join(dir, name)
		if present[name] != id {
			path = ""
		}
		if err := c.entry(path, id, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cutting) entry(path string, id inode, to string) error {
	if info, err := os.Stat(path); path != "" && err == nil && info.IsDir() {
		return c.folder(path, to)
	}
	synced := c.synced[id].copy
	if filepath.Base(to) == "KEYREGISTRY" { // Badger writes it with O_DSYNC
		synced = path
	}
	way := c.way
	if way == cutMixed {
		way = cutWay(c.random.IntN(int(cutMixed)))
	}
	if path == "" {
		way = cutDrop
	}
	fmt.Fprintf(&c.story, "%s %s; ", filepath.Base(to), way)
	switch way {
	case cutDrop:
		if synced == "" {
			return os.WriteFile(to, nil, 0o600)
		}
		return c.blocks.copy(synced, to)
	case cutKeep:
		return c.blocks.copy(path, to)
	default:
		return c.mix(synced, path, to, way)
	}
}

// mix makes a file that is partly as it was synced, and partly as it is.
func (c *cutting) mix(synced, present, to string, way cutWay) error {
	if err := c.blocks.copy(present, to); err != nil {
		return err
	}
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = c.eachPage(present, synced, func(pages []int64) error {
		after := c.random.IntN(len(pages) + 1)
		for i, off := range pages {
			if way == cutPrefix && i < after || way == cutPages && c.random.IntN(2) == 0 {
				continue
			}
			if err := restorePage(f, synced, off, way == cutPrefix && i == after, c.random); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = f.Truncate(info.Size())
	}
	return errors.Join(err, f.Close())
}

// eachPage calls with the offsets of the pages in which two files differ.
func (c *cutting) eachPage(present, synced string, call func([]int64) error) error {
	a, err := os.Open(present)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	var b *os.File
	if synced != "" {
		if b, err = os.Open(synced); err != nil {
			return err
		}
		defer func() { _ = b.Close() }()
	}
	var pages []int64
	err = c.blocks.each(a, func(block []byte, off int64) error {
		old := make([]byte, len(block))
		if b != nil {
			if _, err := b.ReadAt(old, off); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
		for i := 0; i < len(block); i += cutPageBytes {
			end := min(i+cutPageBytes, len(block))
			if !bytes.Equal(block[i:end], old[i:end]) {
				pages = append(pages, off+int64(i))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return call(pages)
}

// restorePage puts the page at off back to what was synced: all of it, or, if half, from some byte on.
func restorePage(f *os.File, synced string, off int64, half bool, random *rand.Rand) error {
	page := make([]byte, cutPageBytes)
	if synced != "" {
		b, err := os.Open(synced)
		if err != nil {
			return err
		}
		_, err = b.ReadAt(page, off)
		if err = errors.Join(ignoreEOF(err), b.Close()); err != nil {
			return err
		}
	}
	from := 0
	if half {
		from = random.IntN(cutPageBytes/512) * 512
	}
	_, err := f.WriteAt(page[from:], off+int64(from))
	return err
}
