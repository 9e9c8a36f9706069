// One static binary under several names: Calico's node, controllers, Typha and calicoctl.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"

	"github.com/projectcalico/calico/typha/pkg/daemon"

	"nodecare.example/lab/calico/generated/calicoctl"
	"nodecare.example/lab/calico/generated/kubecontrollers"
	"nodecare.example/lab/calico/generated/node"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "calico-node":
		node.Main()
	case "kube-controllers":
		kubecontrollers.Main()
	case "calicoctl":
		calicoctl.Main()
	case "calico-typha":
		err := daemon.New().InitializeAndServeForever(context.Background())
		logrus.WithError(err).Panic("typha returned")
	default:
		fmt.Fprintln(os.Stderr, "unknown component", name)
		os.Exit(2)
	}
}
