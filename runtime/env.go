package runtime

import (
	"os"
	"strconv"
	"strings"
)

const (
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	goPath      = "/usr/local/go/bin"
)

// environment is what a command gets: the base's, then the sandbox's, then its own; the last value
// of a name wins, and every name appears once.
func environment(s Spec, c Command, u user) []string {
	base := []string{"PATH=" + hostPath(), "HOME=" + u.home, "USER=" + u.name, "LANG=C.UTF-8"}
	if c.TTY != nil {
		base = append(base, "TERM=xterm")
	}
	if n := visibleCPUs(c.Limits); n > 0 && s.CPUView == CPUViewQuota {
		// Libraries that count CPUs in their own ways start a thread for each of the host's.
		for _, name := range []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} {
			base = append(base, name+"="+strconv.Itoa(n))
		}
	}
	merged := mergeEnv(base, s.Env, c.Env)
	return emptyHomeIsUnset(merged, u)
}

// hostPath adds Go's usual place on hosts that have it there, since the base host shows all of /usr.
func hostPath() string {
	if _, err := os.Stat(goPath); err == nil {
		return strings.Replace(defaultPath, "/usr/local/bin:", "/usr/local/bin:"+goPath+":", 1)
	}
	return defaultPath
}

func mergeEnv(lists ...[]string) []string {
	at := map[string]int{}
	var merged []string
	for _, list := range lists {
		for _, e := range list {
			name, _, _ := strings.Cut(e, "=")
			if i, ok := at[name]; ok {
				merged[i] = e
				continue
			}
			at[name] = len(merged)
			merged = append(merged, e)
		}
	}
	return merged
}

func emptyHomeIsUnset(env []string, u user) []string {
	for i, e := range env {
		if e == "HOME=" {
			env[i] = "HOME=" + u.home
		}
	}
	return env
}

// lookUp lists where a program may be: its own path if it has a slash (relative to the work dir), else
// each directory of PATH. An empty element of PATH would be the work dir; it is left out, since a
// sandbox's work dir is full of files that nobody vetted.
func lookUp(name string, env []string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	var paths []string
	for _, e := range env {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for dir := range strings.SplitSeq(list, ":") {
			if dir != "" {
				paths = append(paths, dir+"/"+name)
			}
		}
	}
	if len(paths) == 0 {
		return lookUp(name, []string{"PATH=" + defaultPath})
	}
	return paths
}
