// A management cluster's API server for tests: etcd, kube-apiserver and the few controllers that OSAC's orders need, in
// one program chosen by its first argument. One binary instead of three means one link step and no clash of flags.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: hub etcd|kube-apiserver|kube-controller-manager [flags]")
		os.Exit(2)
	}
	role := os.Args[1]
	// Each server parses the arguments as if it were the whole program.
	os.Args = append([]string{role}, os.Args[2:]...)
	switch role {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "hub: %q is not etcd, kube-apiserver or kube-controller-manager\n", role)
		os.Exit(2)
	}
}
