// What Calico installs on a node: its CNI and IPAM plugins, and their installer. Apart from the rest, because the kubelet's
// runtime starts it for every pod and every node copies it twice.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"

	"github.com/projectcalico/calico/cni-plugin/pkg/install"
	"github.com/projectcalico/calico/cni-plugin/pkg/ipamplugin"
	"github.com/projectcalico/calico/cni-plugin/pkg/plugin"
	"github.com/projectcalico/calico/pkg/buildinfo"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "calico":
		plugin.Main(buildinfo.Version)
	case "calico-ipam":
		ipamplugin.Main(buildinfo.Version)
	case "install":
		if err := install.Install(buildinfo.Version); err != nil {
			logrus.Fatal(err)
		}
	default:
		fmt.Fprintln(os.Stderr, "unknown component", name)
		os.Exit(2)
	}
}
