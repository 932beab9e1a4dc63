package runtime

import "testing"

// TestNamesOfZeroValues: what Info and errors call the zero values can be written out.
func TestNamesOfZeroValues(t *testing.T) {
	s := Spec{Scope: "execute", CPUView: "quota"}.withDefaults("id")
	if err := s.validate(); err != nil || s.Scope != ScopeExecute || s.CPUView != CPUViewQuota {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []Spec{{Scope: "execution"}, {CPUView: "all"}} {
		if bad.withDefaults("id").validate() == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
