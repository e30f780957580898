// Plays the calls that OSAC's command line makes, with the library that it uses (grpc-go), over TLS, with a token, from
// descriptors that were not made from our proto/. One JSON object a line comes in, {"id":1,"argv":["get","clusters"]};
// lines with the same id go out, the last of them with "exit".
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// What one line asks for.
type command struct {
	ID    int      `json:"id"`
	Argv  []string `json:"argv"`
	Token string   `json:"token"`
	// Goes on with the command of this id: an editor that was left, a watch that was interrupted.
	Continue int `json:"continue"`
}

// One call that was made.
type call struct {
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
	Code    string          `json:"code"`
	Message string          `json:"message,omitempty"`
}

type output struct {
	ID      int               `json:"id"`
	Exit    *int              `json:"exit,omitempty"`
	Error   string            `json:"error,omitempty"`
	Hint    string            `json:"hint,omitempty"`
	Calls   []call            `json:"calls,omitempty"`
	Objects []json.RawMessage `json:"objects,omitempty"`
	Rows    [][]string        `json:"rows,omitempty"`
	Text    string            `json:"text,omitempty"`
	// Of a watch: the stream has begun; then each event.
	Watching bool            `json:"watching,omitempty"`
	Event    json.RawMessage `json:"event,omitempty"`
	// Of edit: the object was read, the editor is open.
	Editing bool `json:"editing,omitempty"`
}

type player struct {
	address string
	roots   *x509.CertPool
	files   *protoregistry.Files
	types   *dynamicpb.Types
	out     sync.Mutex
	waiting sync.Map
}

// One run of one command.
type session struct {
	*player
	id      int
	token   string
	private bool
	tenant  string
	conn    *grpc.ClientConn
	result  output
}

func main() {
	address := flag.String("address", "", "host:port")
	authority := flag.String("ca-file", "", "PEM file of the authority")
	descriptors := flag.String("descriptors", "", "file of a FileDescriptorSet")
	flag.Parse()
	p, err := newPlayer(*address, *authority, *descriptors)
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	var running sync.WaitGroup
	for lines.Scan() {
		var asked command
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		if asked.Continue != 0 {
			if waiting, there := p.waiting.LoadAndDelete(asked.Continue); there {
				close(waiting.(chan struct{}))
			}
			continue
		}
		running.Go(func() { p.play(asked) })
	}
	running.Wait()
}

func newPlayer(address, authority, descriptors string) (*player, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", authority)
	}
	image, err := os.ReadFile(descriptors)
	if err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(image, &set); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, err
	}
	return &player{address: address, roots: roots, files: files, types: dynamicpb.NewTypes(files)}, nil
}

func (p *player) play(asked command) {
	s := &session{player: p, id: asked.ID, token: asked.Token}
	err := s.run(asked.Argv)
	if s.conn != nil {
		s.conn.Close()
	}
	exit := 0
	if err != nil {
		exit = 1
		s.result.Error = "Error: " + err.Error()
	}
	s.result.Exit = &exit
	s.say(s.result)
}

func (p *player) say(line output) {
	text, err := json.Marshal(line)
	if err != nil {
		log.Fatal(err)
	}
	p.out.Lock()
	defer p.out.Unlock()
	fmt.Println(string(text))
}

func (s *session) say(line output) {
	line.ID = s.id
	s.player.say(line)
}

// Waits until a line says to go on.
func (s *session) wait() <-chan struct{} {
	waiting := make(chan struct{})
	s.waiting.Store(s.id, waiting)
	return waiting
}

type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// A token is sent over TLS alone.
func (b bearer) RequireTransportSecurity() bool { return true }

// The token is left out on the first connection of `login`.
func (s *session) connect(withToken bool) error {
	if s.conn != nil {
		s.conn.Close()
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: s.roots})),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 15 * time.Second, Timeout: 10 * time.Second}),
	}
	if withToken && s.token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(s.token)))
	}
	conn, err := grpc.NewClient("dns:///"+s.address, options...)
	s.conn = conn
	return err
}

func (s *session) connected() error {
	if s.conn != nil {
		return nil
	}
	return s.connect(true)
}

func (s *session) method(service, name string) (protoreflect.MethodDescriptor, error) {
	found, err := s.files.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil, err
	}
	method := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(name))
	if method == nil {
		return nil, fmt.Errorf("%s has no method %s", service, name)
	}
	return method, nil
}

// Fills a request by JSON, with the names of the fields as they are in the table.
func (s *session) request(method protoreflect.MethodDescriptor, fields map[string]any) (*dynamicpb.Message, error) {
	request := dynamicpb.NewMessage(method.Input())
	if fields == nil {
		return request, nil
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return request, protojson.UnmarshalOptions{Resolver: s.types}.Unmarshal(text, request)
}

// One unary call. After an answer Unauthenticated it is made a second time.
func (s *session) invoke(service, name string, fields map[string]any) (*dynamicpb.Message, error) {
	method, err := s.method(service, name)
	if err != nil {
		return nil, err
	}
	request, err := s.request(method, fields)
	if err != nil {
		return nil, err
	}
	return s.send(method, request)
}

func (s *session) send(method protoreflect.MethodDescriptor, request *dynamicpb.Message) (*dynamicpb.Message, error) {
	if err := s.connected(); err != nil {
		return nil, err
	}
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	for try := 1; ; try++ {
		response := dynamicpb.NewMessage(method.Output())
		err := s.conn.Invoke(context.Background(), path, request, response)
		s.note(path, request, err)
		if err == nil {
			return response, nil
		}
		if status.Code(err) != codes.Unauthenticated || try == 2 {
			return nil, err
		}
	}
}

// Update of a whole object: it is sent as it is, with the fields that the table does not know.
func (s *session) update(kind kind, object protoreflect.Message, mask ...string) error {
	method, err := s.method(kind.service, "Update")
	if err != nil {
		return err
	}
	fields := map[string]any{}
	if len(mask) > 0 {
		fields["update_mask"] = mask[0]
	}
	request, err := s.request(method, fields)
	if err != nil {
		return err
	}
	request.Set(method.Input().Fields().ByName("object"), protoreflect.ValueOfMessage(object))
	response, err := s.send(method, request)
	if err != nil {
		return err
	}
	return s.show(get(response, "object").Message())
}

func (s *session) note(path string, request proto.Message, err error) {
	text, _ := protojson.MarshalOptions{UseProtoNames: true, Resolver: s.types}.Marshal(request)
	made := call{Method: path[1:], Request: text, Code: status.Code(err).String()}
	if err != nil {
		made.Message = status.Convert(err).Message()
	}
	s.result.Calls = append(s.result.Calls, made)
}

func (s *session) json(message protoreflect.Message) (json.RawMessage, error) {
	return protojson.MarshalOptions{UseProtoNames: true, Resolver: s.types}.Marshal(message.Interface())
}

func (s *session) show(object protoreflect.Message) error {
	text, err := s.json(object)
	s.result.Objects = append(s.result.Objects, text)
	return err
}

func (s *session) stream(service, name string, fields map[string]any) (grpc.ClientStream, protoreflect.MethodDescriptor, error) {
	method, err := s.method(service, name)
	if err != nil {
		return nil, nil, err
	}
	request, err := s.request(method, fields)
	if err != nil {
		return nil, nil, err
	}
	if err := s.connected(); err != nil {
		return nil, nil, err
	}
	path := fmt.Sprintf("/%s/%s", service, name)
	stream, err := s.conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, path)
	if err == nil {
		err = errors.Join(stream.SendMsg(request), stream.CloseSend())
	}
	s.note(path, request, err)
	return stream, method, err
}

func get(message protoreflect.Message, path ...string) protoreflect.Value {
	value := protoreflect.ValueOfMessage(message)
	for _, name := range path {
		inner := value.Message()
		value = inner.Get(inner.Descriptor().Fields().ByName(protoreflect.Name(name)))
	}
	return value
}
