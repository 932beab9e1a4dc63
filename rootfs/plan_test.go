package rootfs

import (
	"strings"
	"testing"
)

func goodPlan() Plan {
	return Plan{
		Target: "/x/root", Dev: "/x/dev", Base: BaseHost, IDs: IDs{100000, 100000, 65536}, User: User{UID: 1000, GID: 1000},
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		change func(*Plan)
		want   string // in the error; "": none
	}{
		"good":             {func(*Plan) {}, ""},
		"base":             {func(p *Plan) { p.Base = "image" }, `base "image"`},
		"relative target":  {func(p *Plan) { p.Target = "root" }, "two absolute paths"},
		"same place":       {func(p *Plan) { p.Dev = p.Target + "/" }, "two absolute paths"},
		"root's ids":       {func(p *Plan) { p.IDs.UIDBase = 0 }, "above 0"},
		"ids that overrun": {func(p *Plan) { p.IDs.GIDBase = 1<<32 - 65536 }, "end below"},
		"foreign user":     {func(p *Plan) { p.User.UID = 65536 }, "below 65536"},
		"negative group":   {func(p *Plan) { p.User.GID = -1 }, "below 65536"},
		"hostname":         {func(p *Plan) { p.Hostname = "a\nb" }, "hostname"},
		"home":             {func(p *Plan) { p.User.Home = "/a:0:0" }, "home"},
		"mount point":      {func(p *Plan) { p.MountPoints = []string{"tmp"} }, "mount point"},
		"root mount point": {func(p *Plan) { p.MountPoints = []string{"/tmp/.."} }, "mount point"},
		"relative source":  {func(p *Plan) { p.Mounts = []Mount{{Kind: KindBind, Source: "a", Destination: "/a"}} }, `bind "a"`},
		"no source":        {func(p *Plan) { p.Mounts = []Mount{{Kind: KindBind, Destination: "/a"}} }, `bind ""`},
		"kind":             {func(p *Plan) { p.Mounts = []Mount{{Kind: "nfs", Destination: "/a"}} }, "kind"},
		"tmpfs size":       {func(p *Plan) { p.Mounts = []Mount{{Kind: KindTmpfs, Inodes: 1, Destination: "/a"}} }, "size and inodes"},
		"tmpfs owner": {
			func(p *Plan) {
				p.Mounts = []Mount{{Kind: KindTmpfs, Size: 1, Inodes: 1, UID: 70000, Destination: "/a"}}
			}, "owner",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := goodPlan()
			c.change(&p)
			err := Validate(p)
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestValidateDestinations(t *testing.T) {
	for dst, ok := range map[string]bool{
		"/data": true, "/a b,c:d\\e\nü": true, "/dev/shm": true, "/dev/shm/": true, "/device": true, "/procs": true,
		"": false, "data": false, "/": false, "/..": false, "/data/..": false, "/proc": false, "/proc/sys": false, "/sys/": false,
		"/dev": false, "/dev/null": false, "/dev/shm/x": false, "/x/../proc": false, "//proc": false, "/a\x00": false,
	} {
		p := goodPlan()
		p.Mounts = []Mount{{Kind: KindBind, Source: "/s", Destination: dst}}
		if err := Validate(p); (err == nil) != ok {
			t.Errorf("%q: %v", dst, err)
		}
	}
}

func TestValidateReportsEverything(t *testing.T) {
	p := Plan{Base: "b", Mounts: []Mount{{Kind: "k", Destination: "rel"}, {Kind: KindTmpfs, Destination: "/proc"}}}
	text := Validate(p).Error()
	for _, want := range []string{"base", "target", "ids", "user", `kind "k"`, `"rel"`, "needs a size", "/proc is the sandbox's own"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}
