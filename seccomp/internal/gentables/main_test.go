package main

import (
	"bytes"
	"os"
	"testing"
)

// TestTablesAreCurrent fails when x/sys knows calls that the checked-in tables do not.
func TestTablesAreCurrent(t *testing.T) {
	dir, err := unixDir()
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(dir)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../tables.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, have) {
		t.Error("tables.go is out of date: run go generate in the seccomp directory")
	}
}
