// One static binary under several names: Calico's node, CNI, controllers, Typha and calicoctl.
// The name is argv[0]'s base, or (when called as "calico-all") the first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"

	"github.com/projectcalico/calico/cni-plugin/pkg/install"
	"github.com/projectcalico/calico/cni-plugin/pkg/ipamplugin"
	"github.com/projectcalico/calico/cni-plugin/pkg/plugin"
	"github.com/projectcalico/calico/pkg/buildinfo"
	"github.com/projectcalico/calico/typha/pkg/daemon"

	"nodecare.example/lab/calico/generated/calicoctlmain"
	"nodecare.example/lab/calico/generated/calnode"
	"nodecare.example/lab/calico/generated/kubecontrollers"
)

func main() {
	name := filepath.Base(os.Args[0])
	if name == "calico-all" {
		if len(os.Args) < 2 {
			fmt.Fprintln(os.Stderr, "usage: calico-all NAME [args]")
			os.Exit(2)
		}
		name = os.Args[1]
		os.Args = append([]string{name}, os.Args[2:]...)
	}
	switch name {
	case "calico-node":
		calnode.Main()
	case "calico":
		plugin.Main(buildinfo.Version)
	case "calico-ipam":
		ipamplugin.Main(buildinfo.Version)
	case "install":
		if err := install.Install(buildinfo.Version); err != nil {
			logrus.Fatal(err)
		}
	case "calico-kube-controllers", "kube-controllers":
		kubecontrollers.Main()
	case "calicoctl":
		calicoctlmain.Main()
	case "calico-typha":
		err := daemon.New().InitializeAndServeForever(context.Background())
		logrus.WithError(err).Panic("typha returned")
	default:
		fmt.Fprintln(os.Stderr, "unknown component", name)
		os.Exit(2)
	}
}
