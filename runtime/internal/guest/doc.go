// Package guest holds process 1 of a sandbox, a small static C program built from src/, and the
// host's side of the protocol to it (src/proto.h has the picture).
//
// What the host sends is trusted by the guest but checked; what the guest sends is hostile input to
// the host: every message has one fixed size, is read into a fixed buffer, and its numbers are
// bounded before use. The guest cannot make the host allocate, loop or block for ever: callers wait
// with a context.
package guest
