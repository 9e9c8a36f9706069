// What one version of Calico makes of this network namespace, said by its own code.
//
//	autodetect METHOD [4|6] [INTERNAL-IP...]   the address that the method finds, or NONE
//	autodetect --exclusions                    the names that first-found passes over
//	autodetect --serve                         questions on standard input and answers on standard output, one JSON object a line
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	_ "unsafe" // for linkname

	libapi "github.com/projectcalico/calico/libcalico-go/lib/apis/v3"
	client "github.com/projectcalico/calico/libcalico-go/lib/clientv3"
	"github.com/projectcalico/calico/libcalico-go/lib/options"
	"github.com/projectcalico/calico/node/pkg/lifecycle/startup/autodetection"
	"github.com/projectcalico/calico/node/pkg/lifecycle/utils"
	"github.com/sirupsen/logrus"
	v1 "k8s.io/api/core/v1"

	_ "github.com/projectcalico/calico/node/pkg/lifecycle/startup"
)

// What start-up does with the address, and what the address monitor does again at every poll.
//
//go:linkname configureAndCheck github.com/projectcalico/calico/node/pkg/lifecycle/startup.configureAndCheckIPAddressSubnets
func configureAndCheck(ctx context.Context, cli client.Interface, node *libapi.Node, k8sNode *v1.Node) bool

// question asks for a detection, for start-up's decision (env is given), or for the names that patterns leave (names is given).
type question struct {
	Method   string            `json:"method"`
	Family   int               `json:"family"`
	Internal []string          `json:"internal"`
	Env      map[string]string `json:"env"`
	Stored   *addresses        `json:"stored"`
	Others   []addresses       `json:"others"`
	Names    []string          `json:"names"`
	Include  []string          `json:"include"`
	Exclude  []string          `json:"exclude"`
}

type addresses struct {
	Name string `json:"name,omitempty"`
	V4   string `json:"v4"`
	V6   string `json:"v6"`
}

type answer struct {
	CIDR    string     `json:"cidr"`
	Exit    int        `json:"exit"`
	Log     []line     `json:"log"`
	Changed bool       `json:"changed"`
	Node    *addresses `json:"node,omitempty"`
	Cleared *addresses `json:"cleared,omitempty"`
	Names   []string   `json:"names,omitempty"`
	Error   string     `json:"error,omitempty"`
}

type line struct {
	Level   string `json:"level"`
	Message string `json:"message"`
	Error   string `json:"error,omitempty"`
}

// listener keeps what is logged while one question is answered.
type listener struct{ heard []line }

func (l *listener) Levels() []logrus.Level {
	return []logrus.Level{logrus.ErrorLevel, logrus.WarnLevel, logrus.InfoLevel}
}

func (l *listener) Fire(entry *logrus.Entry) error {
	said := line{Level: entry.Level.String(), Message: entry.Message}
	if err, given := entry.Data[logrus.ErrorKey]; given {
		said.Error = fmt.Sprint(err)
	}
	l.heard = append(l.heard, said)
	return nil
}

// exited is how a call of Calico's exit function gets out of Calico's code.
type exited int

func main() {
	logrus.SetOutput(io.Discard)
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: autodetect METHOD [4|6] [INTERNAL-IP...] | --exclusions | --serve")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "--exclusions":
		fmt.Println(strings.Join(autodetection.DEFAULT_INTERFACES_TO_EXCLUDE, "\n"))
	case "--serve":
		serve()
	default:
		logrus.SetOutput(os.Stderr)
		asked := question{Method: os.Args[1], Family: 4}
		if len(os.Args) > 2 && os.Args[2] == "6" {
			asked.Family = 6
		}
		if len(os.Args) > 3 {
			asked.Internal = os.Args[3:]
		}
		found := reply(asked, &listener{})
		if found.CIDR == "" {
			fmt.Println("NONE")
			os.Exit(1)
		}
		fmt.Println(found.CIDR)
	}
}

func serve() {
	ear := &listener{}
	logrus.AddHook(ear)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if err := out.Encode(reply(asked, ear)); err != nil {
			os.Exit(2)
		}
	}
}

func reply(asked question, ear *listener) (said answer) {
	ear.heard = []line{}
	defer func() {
		if code, ended := recover().(exited); ended {
			said.Exit = int(code)
		}
		said.Log = ear.heard
	}()
	utils.SetExitFunction(func(code int) { panic(exited(code)) })
	if asked.Names != nil {
		found, err := left(asked.Names, asked.Include, asked.Exclude)
		said.Names = found
		if err != nil {
			said.Error = err.Error()
		}
	} else if asked.Env != nil {
		start(asked, &said)
	} else if found := autodetection.AutoDetectCIDR(asked.Method, asked.Family, kubernetesNode(asked.Internal), interfaces); found != nil {
		said.CIDR = found.String()
	}
	return said
}

// start lets start-up's own code decide, with an API that knows the other nodes and notes what is taken back.
func start(asked question, said *answer) {
	for _, name := range []string{"IP", "IP6", "IP_AUTODETECTION_METHOD", "IP6_AUTODETECTION_METHOD", "CALICO_NETWORKING_BACKEND", "DISABLE_NODE_IP_CHECK"} {
		os.Unsetenv(name)
		if value, given := asked.Env[name]; given {
			os.Setenv(name, value)
		}
	}
	node := libapi.NewNode()
	node.Name = "this"
	nodes := []libapi.Node{}
	for _, other := range asked.Others {
		nodes = append(nodes, calicoNode(other))
	}
	if asked.Stored != nil {
		*node = calicoNode(addresses{Name: "this", V4: asked.Stored.V4, V6: asked.Stored.V6})
		node.ResourceVersion = "1"
		nodes = append(nodes, *node.DeepCopy())
	}
	said.Node = &addresses{}
	defer func() {
		if node.Spec.BGP != nil {
			said.Node.V4, said.Node.V6 = node.Spec.BGP.IPv4Address, node.Spec.BGP.IPv6Address
		}
	}()
	said.Changed = configureAndCheck(context.Background(), &api{nodes: nodes, said: said}, node, kubernetesNode(asked.Internal))
}

func calicoNode(held addresses) libapi.Node {
	node := libapi.NewNode()
	node.Name = held.Name
	node.Spec.BGP = &libapi.NodeBGPSpec{IPv4Address: held.V4, IPv6Address: held.V6}
	return *node
}

func kubernetesNode(internal []string) *v1.Node {
	if internal == nil {
		return nil
	}
	node := &v1.Node{}
	for _, address := range internal {
		node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: address})
	}
	return node
}

// api answers the two questions that this part of start-up asks.
type api struct {
	client.Interface
	nodes []libapi.Node
	said  *answer
}

type nodesAPI struct {
	client.NodeInterface
	*api
}

func (a *api) Nodes() client.NodeInterface { return nodesAPI{api: a} }

func (n nodesAPI) List(context.Context, options.ListOptions) (*libapi.NodeList, error) {
	return &libapi.NodeList{Items: n.nodes}, nil
}

func (n nodesAPI) Update(_ context.Context, node *libapi.Node, _ options.SetOptions) (*libapi.Node, error) {
	n.said.Cleared = &addresses{}
	if node.Spec.BGP != nil {
		n.said.Cleared.V4, n.said.Cleared.V6 = node.Spec.BGP.IPv4Address, node.Spec.BGP.IPv6Address
	}
	return node, nil
}
