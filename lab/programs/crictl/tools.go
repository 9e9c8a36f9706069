//go:build tools

// Package tools pins crictl, which is built by its package path.
package tools

import _ "sigs.k8s.io/cri-tools/cmd/crictl"
