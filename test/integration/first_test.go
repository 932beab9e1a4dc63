package integration

import "testing"

func TestMainJob(t *testing.T) {
	husk(t, "run", "--", "python3", "-c", "print(6*7)").want(t, 0, "42\n")
}

func TestResultFields(t *testing.T) {
	r, o := shResult(t, "echo out; echo err >&2; exit 3")
	if o.code != 3 || r.ExitCode != 3 || r.Reason != "exited" || r.Stdout != "out\n" || r.Stderr != "err\n" || r.StdoutBytes != 4 {
		t.Errorf("%+v", r)
	}
	if r.Signal != nil || r.Error != nil || r.WallSeconds <= 0 || r.ID == "" || r.Sandbox == "" {
		t.Errorf("%+v", r)
	}
	if r.MemoryPeak == nil || *r.MemoryPeak <= 0 || r.CPUUser == nil || r.OOMKills == nil || *r.OOMKills != 0 || r.PIDsLimitHits == nil {
		t.Errorf("not measured: %+v", r)
	}
}
