package main

import (
	"github.com/husk-sandbox/husk/netpolicy"
	"github.com/husk-sandbox/husk/runtime"
)

// sandboxFlags are the flags that describe a sandbox, as the user wrote them.
type sandboxFlags struct {
	name, net, hostname      string
	scope, seccomp           string
	labels, downgrades       []string
	bindTexts, tmpfsTexts    []string
	limits                   limitFlags
	cpuset, oomKill, cpuView string
	process                  processFlags
}

// limitFlags bound a sandbox, or one execution.
type limitFlags struct{ memory, cpus, pids string }

// processFlags say as whom, where and with what environment programs run.
type processFlags struct {
	user, workDir string
	env, envFiles []string
}

func (f *sandboxFlags) sections() []section {
	return []section{
		{"Sandbox", []*option{
			text("name", "NAME", "a second name besides the id, unique", &f.name),
			list("label", "K=V", "note for the caller, for husk ps --filter; repeatable", &f.labels),
			text("hostname", "NAME", "hostname inside (default the sandbox's id)", &f.hostname),
			text("scope", "SCOPE", "execute: executions share only workspace and binds (default); sandbox: "+
				"network, IPC, /tmp, /run and /dev/shm too", &f.scope).oneOf("execute", "sandbox"),
			text("net", "POLICY", "none: loopback only (default); host: the host's own network", &f.net).oneOf("none", "host"),
		}},
		{"Files", []*option{
			list("bind", "SRC:DST[:ro|rw[,host-root]]", "show a file or directory of the host; ro, read-only, is "+
				"the default (unlike docker); files written with rw belong to the owner of SRC; host-root allows rw "+
				`on what host root owns; a colon in a path is written \:; repeatable`, &f.bindTexts),
			list("tmpfs", "DST[:size=64m,mode=1777,inodes=N,exec]", "memory file system; its content counts as "+
				"memory (default size 64m, mode 1777, one inode per 4 KiB, no programs run from it); repeatable",
				&f.tmpfsTexts),
		}},
		{"Limits", append(f.limits.options("(default 512m; swap is always 0)", "(default 1)", "(default 128)"),
			text("cpuset", "LIST", "these CPUs only, such as 0-1,3 (default all)", &f.cpuset),
			text("cpu-view", "VIEW", "how many CPUs programs see: quota: --cpus rounded up (default); host: all",
				&f.cpuView).oneOf("quota", "host"),
			text("oom-kill", "WHAT", "out of memory kills one process (default), or the group: the whole execution",
				&f.oomKill).oneOf("process", "group"),
		)},
		{"Process", f.process.options("snapshot's own; base host: 1000", "/workspace")},
		{"Security", []*option{
			seccompOption(&f.seccomp, "the profile of that name"),
			list("allow-downgrade", "NAME", "do without NAME where the host cannot give it, instead of an error: "+
				"swap (a swap limit); the result lists it; repeatable", &f.downgrades).oneOf("swap"),
		}},
	}
}

func (f *limitFlags) options(memory, cpus, pids string) []*option {
	return []*option{
		text("memory", "SIZE", "memory, with unit: 512m, 1.5g; at least 8m; or unlimited "+memory, &f.memory),
		text("cpus", "N", "CPU time, in CPUs: 0.5, 2; or unlimited "+cpus, &f.cpus),
		text("pids", "N", "processes and threads, or unlimited "+pids, &f.pids),
	}
}

func (f *processFlags) options(user, dir string) []*option {
	return []*option{
		text("user", "USER[:GROUP]", "run as this name or number, inside (default the "+user+")", &f.user).as("u"),
		text("workdir", "DIR", "start here (default "+dir+")", &f.workDir).as("w"),
		list("env", "NAME[=VALUE]", "set a variable; NAME alone takes its present value, and must be set; repeatable",
			&f.env).as("e"),
		list("env-file", "FILE", "variables, one NAME=VALUE a line, # for comments; --env wins; repeatable", &f.envFiles),
	}
}

func seccompOption(to *string, def string) *option {
	return text("seccomp", "PROFILE", "default, strict, unconfined, or a file with an OCI profile in JSON (by default "+def+")",
		to).oneOf("default", "strict", "unconfined")
}

func (f *limitFlags) limits(p *problems) runtime.Limits {
	return runtime.Limits{
		Memory: p.size("--memory", f.memory), CPUs: p.cpus("--cpus", f.cpus), PIDs: p.count("--pids", f.pids),
	}
}

// spec is the Spec that the flags ask for; what is wrong with it goes to p. It only reads: the
// environment, and the files that the flags name.
func (f *sandboxFlags) spec(p *problems, lookup func(string) (string, bool)) runtime.Spec {
	network, err := netpolicy.Parse(f.net)
	p.add("--net", err)
	s := runtime.Spec{
		Name: f.name, Labels: p.labels("--label", f.labels), Network: network, Hostname: f.hostname,
		User: f.process.user, WorkDir: f.process.workDir,
		Env:   p.environment(f.process.envFiles, f.process.env, lookup),
		Binds: p.binds("--bind", f.bindTexts), Tmpfs: p.tmpfs("--tmpfs", f.tmpfsTexts),
		Limits: f.limits.limits(p), Seccomp: p.seccomp("--seccomp", f.seccomp), AllowDowngrade: f.downgrades,
	}
	s.Limits.CPUSet = f.cpuset
	s.Limits.OOMGroup = p.oneOf("--oom-kill", f.oomKill, "process", "group") == "group"
	if p.oneOf("--scope", f.scope, "execute", "sandbox") == "sandbox" {
		s.Scope = runtime.ScopeSandbox
	}
	if p.oneOf("--cpu-view", f.cpuView, "quota", "host") == "host" {
		s.CPUView = runtime.CPUViewHost
	}
	return s
}
