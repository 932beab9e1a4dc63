package guest

import _ "embed" // the guest's program

//go:embed guest_amd64
var program []byte
