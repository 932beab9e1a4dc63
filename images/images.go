// Package images turns the name of a root file system into a snapshot.
//
//	s, err := images.Resolve("")   // the built-in base "host"
//
// A snapshot is a named, immutable root. This version knows one, the base host: the host's own
// /usr, read-only, which needs no image. The store for others comes later.
//
// Guarantees: a name is checked in full before anything else is done with it. What Resolve returns
// without an error exists. A name that is not here is [ErrNotFound], never another snapshot in its
// place; a text that cannot be a name is [ErrName].
//
// Limits: a name has at most [MaxName] bytes. No kernel feature is needed, and nothing is read from
// disk or from a network.
//
// What it does not protect against: base host shows the programs that the host has, in the versions
// that it has; they change when the host is upgraded.
package images

import (
	"errors"
	"fmt"
)

// Errors that a caller may decide on.
var (
	// ErrNotFound: the name is a good one, but there is no such snapshot.
	ErrNotFound = errors.New("not found; the only snapshot in this version is the built-in base host")
	// ErrName: the text can be neither a snapshot's name nor an image reference.
	ErrName = errors.New("not a snapshot name")
)

// Host is the name of the built-in base.
const Host = "host"

// Snapshot is a named, immutable root file system. The zero value is none at all.
type Snapshot struct {
	// Name is what it is known by.
	Name string
	// BuiltIn says that it needs no layers: its files are the host's own.
	BuiltIn bool
}

// Resolve finds the snapshot that rawName means; the empty name is the base host. Errors wrap
// ErrName or ErrNotFound.
func Resolve(rawName string) (Snapshot, error) {
	if rawName == "" || rawName == Host {
		return Snapshot{Name: Host, BuiltIn: true}, nil
	}
	if err := CheckReference(rawName); err != nil {
		return Snapshot{}, err
	}
	return Snapshot{}, fmt.Errorf("snapshot %q: %w", rawName, ErrNotFound)
}
