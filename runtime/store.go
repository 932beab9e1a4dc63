package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/husk-sandbox/husk/images"
)

// storeVersion is the format of what is below Options.Root. A store of a newer one is refused.
const storeVersion = 1

// store knows where things lie:
//
//	Root/version
//	Root/lock                  shared while a sandbox's directory is made, exclusive to clear one without locks
//	Root/names/<name>          link to an id
//	Root/sandboxes/<id>/       state.json, locks op, alive and, of Run, owner
//	Run/ids/<n>                link to the id that holds range n
//	Run/cpus/<id>:<list>       CPUs assigned
//	Run/<id>/                  control (socket), root, dev, guest (libcontainer's state)
type store struct{ root, run string }

func (s store) sandbox(id string) string { return filepath.Join(s.root, "sandboxes", id) }
func (s store) name(name string) string  { return filepath.Join(s.root, "names", name) }
func (s store) runDir(id string) string  { return filepath.Join(s.run, id) }
func (s store) socket(id string) string  { return filepath.Join(s.run, id, "control") }
func (s store) lock() string             { return filepath.Join(s.root, "lock") }
func (s store) ids() string              { return filepath.Join(s.run, "ids") }
func (s store) cpus() string             { return filepath.Join(s.run, "cpus") }

// open makes the directories that are missing and checks the version.
func (s store) open() error {
	for _, dir := range []string{s.root, s.run, filepath.Join(s.root, "sandboxes"), filepath.Join(s.root, "names")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return &SetupError{"open store", dir, plain(err)}
		}
		if err := checkOwn(dir); err != nil {
			return &SetupError{"open store", dir, err}
		}
	}
	path := filepath.Join(s.root, "version")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return writeFile(path, []byte(strconv.Itoa(storeVersion)+"\n"))
	}
	if err != nil {
		return &SetupError{"open store", path, plain(err)}
	}
	if v, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || v > storeVersion {
		return &SetupError{"open store", s.root, fmt.Errorf("written by a newer husk (version %q, this one knows %d): upgrade husk or use another --root",
			strings.TrimSpace(string(text)), storeVersion)}
	}
	return nil
}

// checkOwn refuses a directory that others could have planted links in, or could replace files of.
func checkOwn(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return plain(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return errors.New("others may write there: give it to root (chown root, chmod 700) or use another directory")
	}
	return nil
}

// plain drops the operation and path that a SetupError says already.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// state is what is remembered of a sandbox.
type state struct {
	ID         string    `json:"id"`
	Spec       Spec      `json:"spec"` // with its defaults
	State      State     `json:"state"`
	Reason     string    `json:"reason,omitempty"`
	Transient  bool      `json:"transient,omitempty"` // of Run: nothing stays
	CreatedAt  time.Time `json:"created_at"`
	UIDBase    int       `json:"uid_base"`
	CPUs       []int     `json:"cpus,omitempty"` // assigned; empty: all allowed
	Downgrades []string  `json:"downgrades,omitempty"`
}

func (s store) save(st *state) error {
	text, err := json.Marshal(st)
	if err != nil {
		return &SetupError{"save state", st.ID, err}
	}
	return writeFile(filepath.Join(s.sandbox(st.ID), "state.json"), text)
}

func (s store) load(id string) (*state, error) {
	text, err := os.ReadFile(filepath.Join(s.sandbox(id), "state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, &SetupError{"load state", id, plain(err)}
	}
	var st state
	if err := json.Unmarshal(text, &st); err != nil || st.ID != id {
		return nil, &SetupError{"load state", id, fmt.Errorf("state.json is damaged: %v", err)}
	}
	return &st, nil
}

// resolve finds the id of an id or name that comes from outside.
func (s store) resolve(rawRef string) (string, error) {
	if err := images.CheckID(rawRef); err != nil {
		return "", fmt.Errorf("%w %w", ErrInvalid, err)
	}
	if _, err := os.Stat(s.sandbox(rawRef)); err == nil {
		return rawRef, nil
	}
	id, err := os.Readlink(s.name(rawRef))
	if err != nil || images.CheckID(id) != nil {
		return "", fmt.Errorf("%w: %s", ErrNotFound, rawRef)
	}
	return id, nil
}

// list gives the ids of all sandboxes, in directory order.
func (s store) list() ([]string, error) {
	f, err := os.Open(filepath.Join(s.root, "sandboxes"))
	if err != nil {
		return nil, &SetupError{"list sandboxes", s.root, plain(err)}
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, &SetupError{"list sandboxes", s.root, plain(err)}
	}
	return names, nil
}

// forget drops every link to a sandbox whose maker died before it could write down what it took.
func (s store) forget(id string) {
	for _, dir := range []string{filepath.Join(s.root, "names"), s.ids(), s.cpus()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // nothing was taken there
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			owner, err := os.Readlink(path)
			if err == nil && owner == id || strings.HasPrefix(e.Name(), id+":") {
				_ = os.Remove(path)
			}
		}
	}
}

// writeFile replaces path as a whole: readers see the old content or the new.
func writeFile(path string, content []byte) error {
	tmp := path + "." + randomID()
	if err := os.WriteFile(tmp, content, 0o600); err != nil {
		_ = os.Remove(tmp)
		return &SetupError{"write", path, plain(err)}
	}
	if err := os.Rename(tmp, path); err != nil {
		_ = os.Remove(tmp)
		return &SetupError{"write", path, plain(err)}
	}
	return nil
}

// lockFile opens (and makes) path and locks it (flock(2)); closing the file unlocks it. With LOCK_NB a
// lock that is held is EWOULDBLOCK.
func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// newLock makes a lock that nobody sees before we have it: a sweep that found it free would take its
// sandbox for a dead one's.
func newLock(path string) (*os.File, error) {
	f, err := lockFile(path+".new", unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
