package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/longshore/longshore/guests"
	"github.com/longshore/longshore/limits"
)

//go:embed templates
var templates embed.FS

//go:embed gosdk.txt
var goSDK string

// ErrExists says that the folder of a new consumer is there already.
var ErrExists = errors.New("there is something already")

// Languages lists what a consumer can be written in.
func Languages() []string { return []string{"go", "c", "rust", "assemblyscript", "javascript"} }

// values are what the templates may name.
type values struct{ Name string }

// New writes a consumer of this name into a folder, which it makes, and returns the files that it wrote, with slashes, relative
// to the folder. If the folder is there already, the error wraps ErrExists, and nothing is changed.
func New(dir, name, language string) ([]string, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if !slices.Contains(Languages(), language) {
		return nil, fmt.Errorf("language %.40q: want one of %s", language, strings.Join(Languages(), ", "))
	}
	files, err := render(name, language)
	if err != nil {
		return nil, err
	}
	if err := sdk(files, language); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o750); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrExists)
	} else if err != nil {
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	return write(dir, files)
}

// checkName refuses what a manifest would refuse as a consumer's name.
func checkName(name string) error {
	ok := name != "" && name[0] != '-' && len(name) <= limits.TenantBytes
	for i := range len(name) {
		c := name[i]
		ok = ok && (c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z')
	}
	if !ok {
		return fmt.Errorf("name %.80q: want 1 to %d of a-z, 0-9 and -, not beginning with -", name, limits.TenantBytes)
	}
	return nil
}

// render fills in the templates of a language.
func render(name, language string) (map[string][]byte, error) {
	files := map[string][]byte{}
	root := "templates/" + language
	err := fs.WalkDir(templates, root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		t, err := template.ParseFS(templates, file)
		if err != nil {
			return fmt.Errorf("template %s: %w", file, err)
		}
		var text bytes.Buffer
		if err := t.Execute(&text, values{Name: name}); err != nil {
			return fmt.Errorf("template %s: %w", file, err)
		}
		target := strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".tmpl")
		if hidden, ok := strings.CutPrefix(target, "dot-"); ok {
			target = "." + hidden
		}
		files[target] = text.Bytes()
		return nil
	})
	return files, err
}

// sdk adds the files of a language's SDK, in the folder sdk.
func sdk(files map[string][]byte, language string) error {
	if language == "go" {
		for name, text := range unpack(goSDK) {
			files["sdk/"+name] = []byte(text)
		}
		return nil
	}
	return fs.WalkDir(guests.SDKs, language, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := guests.SDKs.ReadFile(file)
		if err != nil {
			return fmt.Errorf("the SDK: %w", err)
		}
		files[path.Join("sdk", strings.TrimPrefix(file, language+"/"))] = text
		return nil
	})
}

// fileMark begins the name of a file in gosdk.txt.
const fileMark = "-- "

// unpack splits gosdk.txt into its files.
func unpack(text string) map[string]string {
	files := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, fileMark); ok && strings.HasSuffix(rest, " --\n") {
			name = strings.TrimSuffix(rest, " --\n")
			continue
		}
		files[name] += line
	}
	return files
}

// write writes the files, whose folders it makes.
func write(dir string, files map[string][]byte) ([]string, error) {
	var names []string
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return nil, fmt.Errorf("make a folder: %w", err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // sources, for everybody to read
			return nil, fmt.Errorf("write the consumer: %w", err)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}
