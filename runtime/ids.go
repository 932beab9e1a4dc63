package runtime

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The block of ids that husk registers for itself where none is: 4095 ranges that end at 2^31-1,
// above what distributions and systemd give out.
const (
	subIDName  = "husk"
	subIDStart = 1879048192
	subIDCount = 4095 * idsPerSandbox
)

// subIDBlock is husk's block of subordinate ids, from /etc/subuid and /etc/subgid (subuid(5)), which
// must have the same one.
func subIDBlock(dir string) (start, count int, err error) {
	for _, file := range []string{"subuid", "subgid"} {
		path := filepath.Join(dir, file)
		s, c, err := readSubID(path)
		if errors.Is(err, errNoSubID) {
			s, c, err = subIDStart, subIDCount, registerSubID(path)
		}
		if err != nil {
			return 0, 0, err
		}
		if start != 0 && (s != start || c != count) {
			return 0, 0, fmt.Errorf("id range: %s/subuid and subgid give %s different blocks: make the lines equal", dir, subIDName)
		}
		start, count = s, c
	}
	if count < idsPerSandbox {
		return 0, 0, fmt.Errorf("id range: the block of %s in %s/subuid has %d ids: at least %d are needed", subIDName, dir, count, idsPerSandbox)
	}
	return start, count, nil
}

var errNoSubID = errors.New("no line for husk")

type subID struct {
	name         string
	start, count int
}

func readSubIDs(path string) ([]subID, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("id range: %w", err)
	}
	defer f.Close()
	var list []subID
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		fields := strings.Split(strings.TrimSpace(scan.Text()), ":")
		if len(fields) != 3 {
			continue
		}
		start, err1 := strconv.Atoi(fields[1])
		count, err2 := strconv.Atoi(fields[2])
		if err1 == nil && err2 == nil {
			list = append(list, subID{fields[0], start, count})
		}
	}
	return list, scan.Err()
}

func readSubID(path string) (start, count int, err error) {
	list, err := readSubIDs(path)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range list {
		if e.name == subIDName {
			return e.start, e.count, nil
		}
	}
	return 0, 0, errNoSubID
}

// registerSubID adds husk's line, so that no other tool gives these ids to somebody else.
func registerSubID(path string) error {
	list, err := readSubIDs(path)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s:%d:%d\n", subIDName, subIDStart, subIDCount)
	for _, e := range list {
		if e.start < subIDStart+subIDCount && subIDStart < e.start+e.count {
			return fmt.Errorf("id range: %s gives ids from %d on to %s: add a line %s:START:COUNT with a free block of 65536 ids or more for each sandbox",
				path, e.start, e.name, subIDName)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("id range: register: %w (or add the line %q yourself)", err, strings.TrimSpace(line))
	}
	defer f.Close()
	if _, err := f.WriteString(line); err != nil {
		return fmt.Errorf("id range: register in %s: %w", path, err)
	}
	return f.Close()
}

// takeRange locks a free range of ids for sandbox id, by a link in dir that names the owner, and gives
// its first host id.
func takeRange(dir, id string, block idBlock) (base int, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, fmt.Errorf("id range: %w", err)
	}
	n := block.count / idsPerSandbox
	first := int(hash(id) % uint32(n))
	for i := range n {
		at := (first + i) % n
		err := os.Symlink(id, filepath.Join(dir, strconv.Itoa(at)))
		if err == nil {
			return block.start + at*idsPerSandbox, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return 0, fmt.Errorf("id range: %w", err)
		}
	}
	return 0, fmt.Errorf("id range: %w: all %d ranges of %s in /etc/subuid are in use: remove sandboxes or register a larger block",
		ErrUnavailable, n, subIDName)
}

type idBlock struct{ start, count int }

// freeRange gives a range back, if it is id's.
func freeRange(dir, id string, base int, block idBlock) {
	path := filepath.Join(dir, strconv.Itoa((base-block.start)/idsPerSandbox))
	if owner, err := os.Readlink(path); err == nil && owner == id {
		_ = os.Remove(path)
	}
}

// hash is FNV-1a: it only spreads the first try.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
