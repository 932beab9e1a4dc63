package runtime

import (
	"crypto/rand"
	"encoding/hex"
)

// cleanup undoes what was built, in reverse, unless it is released.
type cleanup []func()

func (c *cleanup) add(undo func()) { *c = append(*c, undo) }

func (c *cleanup) release() { *c = nil }

func (c *cleanup) run() {
	for i := len(*c) - 1; i >= 0; i-- {
		(*c)[i]()
	}
	*c = nil
}

// randomID is 12 hexadecimal digits.
func randomID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
