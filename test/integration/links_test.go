package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

// links and routes of the host, as the kernel lists them.
func hostNetwork(t *testing.T) []string {
	t.Helper()
	var all []string
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		all = append(all, fmt.Sprint(l.Type(), l.Attrs().Name, l.Attrs().Index, l.Attrs().Flags))
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		all = append(all, r.String())
	}
	slices.Sort(all)
	return all
}

// TestHostNetworkUntouched: no policy and no scope leaves a link or a route on the host.
func TestHostNetworkUntouched(t *testing.T) {
	before := hostNetwork(t)
	for _, flags := range [][]string{nil, {"--net", "host"}, {"--scope", "sandbox"}} {
		sh(t, "true", flags...).want(t, 0, "")
	}
	if after := hostNetwork(t); !slices.Equal(before, after) {
		t.Errorf("before %q\nafter %q", before, after)
	}
}
