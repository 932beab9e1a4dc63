package images

import (
	"fmt"
	"strings"
)

// Longest texts, in bytes. The first is ours, the others are the OCI distribution specification's
// (a repository of 255, a tag of 128) with room for a digest.
const (
	MaxID   = 64
	MaxName = 512

	maxRepository = 255
	maxTag        = 128
)

// Lengths of the digests that an image may be named by, in hexadecimal digits.
const (
	sha256Digits = 64
	sha512Digits = 128
)

// CheckID accepts the name of one snapshot, sandbox or the like: [a-z0-9][a-z0-9_.-]{0,63}. Such a
// text is one path element and never "." or "..". The error wraps ErrName.
func CheckID(rawID string) error {
	if rawID == "" || len(rawID) > MaxID {
		return badName(rawID, "has %d bytes, not 1 to %d", len(rawID), MaxID)
	}
	for i := range len(rawID) {
		c := rawID[i]
		if !isAlphanumeric(c) && (i == 0 || !isSeparator(c)) {
			return badName(rawID, "has %q at byte %d (allowed: [a-z0-9][a-z0-9_.-]*)", c, i)
		}
	}
	return nil
}

// CheckReference accepts an image reference, [HOST[:PORT]/]PATH[:TAG][@DIGEST] of the OCI
// distribution specification, every CheckID name that is one included. The error wraps ErrName.
func CheckReference(rawRef string) error {
	if rawRef == "" || len(rawRef) > MaxName {
		return badName(rawRef, "has %d bytes, not 1 to %d", len(rawRef), MaxName)
	}
	rest, digest, hasDigest := strings.Cut(rawRef, "@")
	if hasDigest && !isDigest(digest) {
		return badName(rawRef, "has no digest of the form sha256:… behind its @")
	}
	rest, tag, hasTag := cutTag(rest)
	if hasTag && !isTag(tag) {
		return badName(rawRef, "has a tag that is not [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
	}
	if len(rest) > maxRepository {
		return badName(rawRef, "has a repository of %d bytes, more than %d", len(rest), maxRepository)
	}
	if !isRepository(rest) {
		return badName(rawRef, "has a repository that is not lower-case path elements joined by /")
	}
	return nil
}

// badName says what is wrong with a name; the name itself is quoted and kept short.
func badName(rawName, format string, args ...any) error {
	const longest = 80
	if len(rawName) > longest {
		rawName = strings.ToValidUTF8(rawName[:longest], "") + "…"
	}
	return fmt.Errorf("%w: %q %s", ErrName, rawName, fmt.Sprintf(format, args...))
}

// cutTag splits at the colon behind the last slash: an earlier one belongs to a port.
func cutTag(ref string) (repository, tag string, found bool) {
	slash := strings.LastIndexByte(ref, '/')
	colon := strings.LastIndexByte(ref, ':')
	if colon <= slash {
		return ref, "", false
	}
	return ref[:colon], ref[colon+1:], true
}

// isRepository accepts [HOST[:PORT]/]PATH. As everywhere, a first element is a host when it has a
// dot or a colon or is localhost, and another element follows.
func isRepository(repository string) bool {
	first, rest, more := strings.Cut(repository, "/")
	if more && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return isHost(first) && isPath(rest)
	}
	return isPath(repository)
}

func isHost(host string) bool {
	name, port, hasPort := strings.Cut(host, ":")
	if hasPort && (port == "" || len(port) > 5 || !all(port, isDigit)) {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isHostLabel(label) {
			return false
		}
	}
	return true
}

func isHostLabel(label string) bool {
	if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return all(label, func(c byte) bool { return c == '-' || isLetterOrDigit(c) })
}

func isPath(path string) bool {
	for element := range strings.SplitSeq(path, "/") {
		if !isPathElement(element) {
			return false
		}
	}
	return true
}

// isPathElement accepts [a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*.
func isPathElement(element string) bool {
	if element == "" || !isAlphanumeric(element[0]) || !isAlphanumeric(element[len(element)-1]) {
		return false
	}
	for i := 0; i < len(element); {
		if isAlphanumeric(element[i]) {
			i++
			continue
		}
		end := i
		for !isAlphanumeric(element[end]) { // the last byte is alphanumeric
			end++
		}
		if !isJoint(element[i:end]) {
			return false
		}
		i = end
	}
	return true
}

func isJoint(joint string) bool {
	return joint == "." || joint == "_" || joint == "__" || strings.Trim(joint, "-") == ""
}

func isTag(tag string) bool {
	if tag == "" || len(tag) > maxTag || tag[0] == '.' || tag[0] == '-' {
		return false
	}
	return all(tag, func(c byte) bool { return isLetterOrDigit(c) || isSeparator(c) })
}

func isDigest(digest string) bool {
	algorithm, digits, _ := strings.Cut(digest, ":")
	switch {
	case algorithm == "sha256" && len(digits) == sha256Digits:
	case algorithm == "sha512" && len(digits) == sha512Digits:
	default:
		return false
	}
	return all(digits, func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' })
}

func all(text string, ok func(byte) bool) bool {
	for i := range len(text) {
		if !ok(text[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool         { return '0' <= c && c <= '9' }
func isAlphanumeric(c byte) bool  { return isDigit(c) || 'a' <= c && c <= 'z' }
func isLetterOrDigit(c byte) bool { return isAlphanumeric(c) || 'A' <= c && c <= 'Z' }
func isSeparator(c byte) bool     { return c == '_' || c == '.' || c == '-' }
