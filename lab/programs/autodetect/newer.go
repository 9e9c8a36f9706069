package main

import (
	"net"

	"github.com/projectcalico/calico/node/pkg/lifecycle/startup/autodetection"
)

func interfaces(include, exclude []string, families ...int) ([]autodetection.Interface, error) {
	return autodetection.GetInterfaces(net.Interfaces, include, exclude, families...)
}

// left are those of the names that the patterns leave.
func left(names, include, exclude []string) ([]string, error) {
	kernel := func() ([]net.Interface, error) {
		found := []net.Interface{}
		for _, name := range names {
			found = append(found, net.Interface{Index: 1, Name: name})
		}
		return found, nil
	}
	kept := []string{}
	found, err := autodetection.GetInterfaces(kernel, include, exclude, 4)
	for _, one := range found {
		kept = append(kept, one.Name)
	}
	return kept, err
}
