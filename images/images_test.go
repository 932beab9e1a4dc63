package images_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/husk-sandbox/husk/images"
)

func TestResolveBase(t *testing.T) {
	for _, name := range []string{"", "host"} {
		s, err := images.Resolve(name)
		if err != nil || s.Name != images.Host || !s.BuiltIn {
			t.Errorf("Resolve(%q) = %+v, %v", name, s, err)
		}
	}
}

func TestResolveUnknown(t *testing.T) {
	s, err := images.Resolve("debian:12")
	if !errors.Is(err, images.ErrNotFound) || s != (images.Snapshot{}) {
		t.Fatalf("Resolve = %+v, %v; want ErrNotFound", s, err)
	}
	const want = `snapshot "debian:12": not found; the only snapshot in this version is the built-in base host`
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestResolveBadName(t *testing.T) {
	for _, name := range []string{"HOST", "host ", "../host", "host\x00", "a\nb", strings.Repeat("a", 600)} {
		_, err := images.Resolve(name)
		if !errors.Is(err, images.ErrName) || errors.Is(err, images.ErrNotFound) {
			t.Errorf("Resolve(%.20q): %v, want ErrName", name, err)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 300) {
			t.Errorf("Resolve(%.20q): error is not one short line: %q", name, err)
		}
	}
}

func TestCheckID(t *testing.T) {
	good := []string{"a", "0", "web-1", "a.b_c-d", "a..b", "a-", strings.Repeat("x", images.MaxID)}
	bad := []string{
		"", ".", "..", "-a", "_a", ".a", "A", "a/b", "a b", "a\x00", "é", "a:b", strings.Repeat("x", images.MaxID+1),
	}
	for _, id := range good {
		if err := images.CheckID(id); err != nil {
			t.Errorf("CheckID(%q): %v", id, err)
		}
	}
	for _, id := range bad {
		if err := images.CheckID(id); !errors.Is(err, images.ErrName) {
			t.Errorf("CheckID(%q): %v, want ErrName", id, err)
		}
	}
}

func TestCheckReference(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a1", 32)
	good := []string{
		"debian", "debian:12", "library/debian", "a__b", "a---b", "a.b", "localhost/x", "localhost:5000/x:y",
		"registry.example/team/app:V1.2_x", "registry.example:5000/a/b@" + digest, "a:t@" + digest,
		"x@sha512:" + strings.Repeat("0f", 64), "Registry.Example/a", "10.0.0.1:80/a",
		"a.example:80", // the tag 80: a port needs a path behind it
	}
	bad := []string{
		"", "/", "a/", "/a", "a//b", "A", "a:", "a:-x", "a:.x", "a@", "a@sha256:", "a@md5:abc", "a@" + digest + "0",
		"a@" + strings.ToUpper(digest), "a@" + digest + "@" + digest, "a___b", "a._b", "a..b", "a-", "-a", ".", "..",
		"a/../b", "-h.example/a", "h.example:/a", "h.example:999999/a", "h.example:x/a", "h..example/a", "a b", "a\x00b",
		"é", "a:" + strings.Repeat("t", 129), strings.Repeat("a", 256), "a:b:c",
	}
	for _, ref := range good {
		if err := images.CheckReference(ref); err != nil {
			t.Errorf("CheckReference(%q): %v", ref, err)
		}
	}
	for _, ref := range bad {
		if err := images.CheckReference(ref); !errors.Is(err, images.ErrName) {
			t.Errorf("CheckReference(%q): %v, want ErrName", ref, err)
		}
	}
}

// The grammar of the distribution specification, as a second opinion for the hand-written parser.
const (
	grammarPath = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	grammarHost = `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*`
	grammar     = `^(?:` + grammarHost + `(?::[0-9]{1,5})?/)?` + grammarPath + `(?:/` + grammarPath + `)*` +
		`(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?` +
		`(?:@(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?$`
)

func FuzzReference(f *testing.F) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for _, ref := range []string{
		"", "host", "debian:12", "registry.example:5000/a/b:c" + digest, "a__b", "a..b", "../a", "A", "a\x00",
	} {
		f.Add(ref)
	}
	accepts := regexp.MustCompile(grammar)
	f.Fuzz(func(t *testing.T, ref string) {
		err := images.CheckReference(ref)
		if err == nil && !accepts.MatchString(ref) {
			t.Errorf("CheckReference(%q) accepts what the grammar does not", ref)
		}
		if err != nil && !errors.Is(err, images.ErrName) {
			t.Errorf("CheckReference(%q): %v", ref, err)
		}
		if images.CheckID(ref) == nil && filepath.Join("/d", ref) != "/d/"+ref {
			t.Errorf("CheckID(%q) accepts what is no path element", ref)
		}
		if s, err := images.Resolve(ref); err == nil && s.Name != images.Host {
			t.Errorf("Resolve(%q) = %+v", ref, s)
		}
	})
}

func ExampleResolve() {
	s, err := images.Resolve("")
	fmt.Println(s.Name, err)
	_, err = images.Resolve("debian:12")
	fmt.Println(errors.Is(err, images.ErrNotFound))
	// Output:
	// host <nil>
	// true
}
