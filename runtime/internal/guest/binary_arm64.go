package guest

import _ "embed" // the guest's program

//go:embed guest_arm64
var program []byte
