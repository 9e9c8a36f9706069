//go:build tools

// Package tools pins the old node as a whole, which is built by its package path.
package tools

import _ "github.com/projectcalico/calico/node/cmd/calico-node"
