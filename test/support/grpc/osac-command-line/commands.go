package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// What follows the command: words, and options with a value.
type arguments struct {
	words   []string
	options map[string]string
}

var switches = []string{"--private", "-w"}

func parse(argv []string) (parsed arguments) {
	parsed.options = map[string]string{}
	for i := 0; i < len(argv); i++ {
		switch word := argv[i]; {
		case slices.Contains(switches, word):
			parsed.options[word] = "yes"
		case strings.HasPrefix(word, "-") && i+1 < len(argv):
			parsed.options[word] = argv[i+1]
			i++
		default:
			parsed.words = append(parsed.words, word)
		}
	}
	return parsed
}

func (s *session) run(argv []string) error {
	given := parse(argv)
	s.private = given.options["--private"] != ""
	s.tenant = given.options["--tenant"]
	words := append(given.words, "", "")
	switch words[0] {
	case "login":
		return s.login()
	case "get":
		return s.get(given)
	case "describe":
		return s.describe(words[1], words[2])
	case "create":
		return s.create(given)
	case "label", "annotate":
		field := map[string]protoreflect.Name{"label": "labels", "annotate": "annotations"}[words[0]]
		return s.mark(field, given.words[1:])
	case "edit":
		return s.edit(words[1], words[2], given.options["--patch"])
	case "scale":
		return s.scale(words[2], given.options["--node-set"])
	case "delete":
		return s.delete(words[1], given.words[2:])
	case "tenant":
		_, err := s.list(s.service("Tenants"), "tenant", byName(words[1]), 2)
		return err
	case "console":
		return s.console(words[1], words[3], given.options)
	}
	return fmt.Errorf("unknown command '%s'", words[0])
}

func (s *session) login() error {
	if err := s.connect(false); err != nil {
		return err
	}
	capabilities, err := s.invoke("osac.public.v1.Capabilities", "Get", nil)
	if err != nil {
		return err
	}
	if err := s.show(capabilities); err != nil {
		return err
	}
	if err := s.connect(true); err != nil {
		return err
	}
	health, err := grpc_health_v1.NewHealthClient(s.conn).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	s.note("/grpc.health.v1.Health/Check", &grpc_health_v1.HealthCheckRequest{}, err)
	if err != nil {
		return err
	}
	if health.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the server is %s", health.Status)
	}
	return nil
}

func (s *session) get(given arguments) error {
	words := append(given.words, "", "")
	switch words[1] {
	case "kubeconfig", "password":
		return s.credential(words[1], words[2])
	}
	kind, err := s.kind(words[1])
	if err != nil {
		s.result.Hint = err.Error()
		return nil
	}
	names := given.words[2:]
	if given.options["-w"] != "" {
		return s.watch(kind, names)
	}
	filter := given.options["--filter"]
	if len(names) > 0 && filter != "" {
		filter = fmt.Sprintf("(%s) && (%s)", byNames(names), filter)
	} else if len(names) > 0 {
		filter = byNames(names)
	}
	found, err := s.list(kind.service, kind.name(), filter, 0)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		s.result.Hint = "There are no objects matching the given criteria."
	}
	table := given.options["-o"] == ""
	for i, object := range found {
		if kind.name() == "secret" && !table {
			if found[i], err = s.read(kind, object); err != nil {
				return err
			}
		}
		if err := s.show(found[i]); err != nil {
			return err
		}
	}
	if table {
		return s.tabulate(kind, found)
	}
	return nil
}

// The id of a reference; the tenant of an object is called by its name.
func referred(holder protoreflect.Message, field string) string {
	if field == "tenant" {
		return get(holder, "metadata", field).String()
	}
	return get(holder, field, "id").String()
}

// Rows of id, name, state, and what each reference of the kind is called; one lookup for each distinct reference.
func (s *session) tabulate(kind kind, objects []protoreflect.Message) error {
	called := map[string]string{}
	for _, object := range objects {
		row := []string{get(object, "id").String(), get(object, "metadata", "name").String()}
		for _, lookup := range lookups[kind.name()] {
			holder := object
			if lookup.field != "tenant" && object.Descriptor().Fields().ByName(protoreflect.Name(lookup.field)) == nil {
				holder = get(object, "spec").Message()
			}
			id := referred(holder, lookup.field)
			key := lookup.service + " " + id
			if _, known := called[key]; !known && id != "" {
				found, err := s.list(s.service(lookup.service), "", byName(id), 0)
				if err != nil {
					return err
				}
				for _, each := range found {
					called[key] = get(each, "metadata", "name").String()
				}
			}
			row = append(row, called[key])
		}
		s.result.Rows = append(s.result.Rows, row)
	}
	return nil
}

func (s *session) credential(what, name string) error {
	found, err := s.list("osac.public.v1.Clusters", "cluster", byName(name), 10)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("cluster '%s' not found", name)
	}
	method := map[string]string{"kubeconfig": "GetKubeconfig", "password": "GetPassword"}[what]
	response, err := s.invoke("osac.public.v1.Clusters", method, map[string]any{"id": get(found[0], "id").String()})
	if err != nil {
		return err
	}
	s.result.Text = get(response, what).String()
	return nil
}

// Ends when a line says so, as an interrupted command does; an end by the server is an error, or exit 0.
func (s *session) watch(kind kind, names []string) error {
	field, err := s.payload(kind)
	if err != nil {
		return err
	}
	filter := fmt.Sprintf("has(event.%s)", field)
	if len(names) > 0 {
		each := make([]string, len(names))
		for i, name := range names {
			each[i] = fmt.Sprintf("event.%s.id == %q || event.%s.metadata.name == %q", field, name, field, name)
		}
		filter += " && (" + strings.Join(each, " || ") + ")"
	}
	stream, method, err := s.stream(s.service("Events"), "Watch", map[string]any{"filter": filter})
	if err != nil {
		return err
	}
	// Headers tell that the stream has begun.
	if _, err := stream.Header(); err != nil {
		return err
	}
	interrupted := s.wait()
	s.say(output{Watching: true})
	ended := make(chan error, 1)
	go func() {
		for {
			message := dynamicpb.NewMessage(method.Output())
			if err := stream.RecvMsg(message); err != nil {
				ended <- err
				return
			}
			event, err := s.json(get(message, "event").Message())
			if err != nil {
				ended <- err
				return
			}
			s.say(output{Event: event})
		}
	}()
	select {
	case <-interrupted:
		return nil
	case err := <-ended:
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

func (s *session) payload(kind kind) (protoreflect.Name, error) {
	event, err := s.files.FindDescriptorByName(protoreflect.FullName(s.service("Event")))
	if err != nil {
		return "", err
	}
	fields := event.(protoreflect.MessageDescriptor).Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); field.Message() == kind.object {
			return field.Name(), nil
		}
	}
	return "", fmt.Errorf("events tell nothing of %s", kind.name())
}

func (s *session) describe(kindName, name string) error {
	kind, err := s.kindOf(kindName)
	if err != nil {
		return err
	}
	object, err := s.one(kind, name)
	if err != nil {
		return err
	}
	if kind.name() == "cluster" {
		version := get(object, "spec", "version", "id").String()
		filter := "(" + byName(version) + ") && this.spec.state > 0"
		if _, err := s.list("osac.public.v1.ClusterVersions", "clusterversion", filter, 2); err != nil {
			s.result.Hint = "warning: " + err.Error()
		}
	}
	return s.show(object)
}

func (s *session) kindOf(name string) (kind, error) {
	if name == "cluster" {
		found, _ := s.kindOn("public", name)
		return found, nil
	}
	return s.kind(name)
}

func (s *session) create(given arguments) error {
	if file := given.options["-f"]; file != "" {
		return s.createDocument(file)
	}
	if creation, there := creations[append(given.words, "")[1]]; there {
		return s.createOf(creation, given.options)
	}
	metadata := map[string]any{"name": given.options["--name"]}
	if s.tenant != "" {
		metadata["tenant"] = s.tenant
	}
	spec := map[string]any{}
	if version := given.options["--version"]; version != "" {
		filter := fmt.Sprintf("this.metadata.name == %q || this.spec.version == %q", version, version)
		found, err := s.list("osac.public.v1.ClusterVersions", "clusterversion", filter, 2)
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("version '%s' not found", version)
		}
		spec["version"] = map[string]any{"id": get(found[0], "id").String()}
	}
	if template := given.options["--template"]; template != "" {
		found, err := s.list("osac.public.v1.ClusterTemplates", "clustertemplate", byName(template), 10)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			_, err := s.list("osac.public.v1.ClusterTemplates", "clustertemplate", "", 10)
			return errors.Join(fmt.Errorf("template '%s' not found", template), err)
		}
		spec["template"] = map[string]any{"id": get(found[0], "id").String()}
	}
	if item := given.options["--catalog-item"]; item != "" {
		spec["catalog_item"] = map[string]any{"name": item}
	}
	response, err := s.invoke("osac.public.v1.Clusters", "Create", map[string]any{
		"object": map[string]any{"metadata": metadata, "spec": spec},
	})
	if err != nil {
		return err
	}
	return s.show(get(response, "object").Message())
}

// One List for each reference by its id or name, then Create with the ids.
func (s *session) createOf(creation creation, options map[string]string) error {
	metadata := map[string]any{"name": options["--name"]}
	if s.tenant != "" && !creation.untenanted {
		metadata["tenant"] = s.tenant
	}
	spec := map[string]any{}
	for _, reference := range creation.references {
		name := options[reference.option]
		if name == "" {
			continue
		}
		kindName := strings.ToLower(strings.TrimSuffix(reference.service, "s"))
		limit := 2
		if reference.field == "template" {
			limit = 10
		}
		found, err := s.list("osac.public.v1."+reference.service, kindName, byName(name), limit)
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("%s '%s' not found", kindName, name)
		}
		spec[reference.field] = map[string]any{"id": get(found[0], "id").String()}
	}
	for key, named := range map[string]map[string]string{"id": creation.asID, "name": creation.asName} {
		for option, field := range named {
			if value := options[option]; value != "" {
				spec[field] = map[string]any{key: value}
			}
		}
	}
	if subnet := options["--subnet"]; creation.attached && subnet != "" {
		spec["network_attachments"] = []any{map[string]any{"subnet": map[string]any{"id": subnet}}}
	}
	for _, field := range creation.fields {
		value, given := options["--"+strings.ReplaceAll(field, "_", "-")]
		if !given {
			continue
		}
		holder := spec
		if inner, there := creation.inside[field]; there {
			if spec[inner] == nil {
				spec[inner] = map[string]any{}
			}
			holder = spec[inner].(map[string]any)
		}
		holder[field] = json.RawMessage(value)
		if !json.Valid([]byte(value)) {
			holder[field] = value
		}
	}
	response, err := s.invoke(creation.service, "Create", map[string]any{
		"object": map[string]any{"metadata": metadata, "spec": spec},
	})
	if err != nil {
		return err
	}
	return s.show(get(response, "object").Message())
}

// A document with `@type`, the full name of its message.
func (s *session) createDocument(text string) error {
	var document map[string]any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return err
	}
	name, _ := document["@type"].(string)
	delete(document, "@type")
	surface := strings.Split(name+"..", ".")[1]
	kind, there := s.kindOn(surface, name)
	if !there {
		return fmt.Errorf("there is no type '%s'", name)
	}
	response, err := s.invoke(kind.service, "Create", map[string]any{"object": document})
	if err != nil {
		return err
	}
	return s.show(get(response, "object").Message())
}

// `key=value` sets, `key-` removes. The map is sent as it is then, and an empty one is not sent at all.
func (s *session) mark(field protoreflect.Name, words []string) error {
	kind, err := s.kindOf(words[0])
	if err != nil {
		return err
	}
	object, err := s.one(kind, words[1])
	if err != nil {
		return err
	}
	metadata := get(object, "metadata").Message()
	marks := metadata.Mutable(metadata.Descriptor().Fields().ByName(field)).Map()
	for _, word := range words[2:] {
		if key, value, sets := strings.Cut(word, "="); sets {
			marks.Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(value))
		} else {
			marks.Clear(protoreflect.ValueOfString(strings.TrimSuffix(word, "-")).MapKey())
		}
	}
	return s.update(kind, object)
}

// The editor gets the object as JSON, and leaves it with a merge patch applied (RFC 7396).
func (s *session) edit(kindName, name, patch string) error {
	kind, err := s.kindOf(kindName)
	if err != nil {
		return err
	}
	object, err := s.one(kind, name)
	if err != nil {
		return err
	}
	closed := s.wait()
	s.say(output{Editing: true})
	<-closed
	text, err := s.json(object)
	if err != nil {
		return err
	}
	var document, changes map[string]any
	if err := errors.Join(json.Unmarshal(text, &document), json.Unmarshal([]byte(patch), &changes)); err != nil {
		return err
	}
	edited, err := json.Marshal(merged(document, changes))
	if err != nil {
		return err
	}
	message := dynamicpb.NewMessage(kind.object)
	if err := (protojson.UnmarshalOptions{Resolver: s.types}).Unmarshal(edited, message); err != nil {
		return err
	}
	return s.update(kind, message)
}

func merged(document, changes map[string]any) map[string]any {
	if document == nil {
		document = map[string]any{}
	}
	for key, change := range changes {
		inner, isMap := change.(map[string]any)
		switch {
		case change == nil:
			delete(document, key)
		case isMap:
			former, _ := document[key].(map[string]any)
			document[key] = merged(former, inner)
		default:
			document[key] = change
		}
	}
	return document
}

// `workers=4`: all node sets are sent, under a mask.
func (s *session) scale(name, nodeSet string) error {
	kind, _ := s.kindOn("public", "cluster")
	object, err := s.one(kind, name)
	if err != nil {
		return err
	}
	set, text, _ := strings.Cut(nodeSet, "=")
	size, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return err
	}
	key := protoreflect.ValueOfString(set).MapKey()
	sets := get(object, "spec", "node_sets").Map()
	if !sets.Has(key) {
		return fmt.Errorf("cluster '%s' has no node set '%s'", name, set)
	}
	node := sets.Get(key).Message()
	node.Set(node.Descriptor().Fields().ByName("size"), protoreflect.ValueOfInt32(int32(size)))
	// JSON writes masks with the names of JSON.
	return s.update(kind, object, "spec.nodeSets")
}

// A name that is not found stops before anything is deleted; failures are collected.
func (s *session) delete(kindName string, names []string) error {
	kind, err := s.kindOf(kindName)
	if err != nil {
		return err
	}
	found, err := s.list(kind.service, kind.name(), byNames(names), 0)
	if err != nil {
		return err
	}
	var ids []string
	for _, name := range names {
		at := slices.IndexFunc(found, func(object protoreflect.Message) bool {
			return get(object, "id").String() == name || get(object, "metadata", "name").String() == name
		})
		if at < 0 {
			s.result.Hint = fmt.Sprintf("%s '%s' not found", kind.name(), name)
			return nil
		}
		ids = append(ids, get(found[at], "id").String())
	}
	var failures []error
	for _, id := range ids {
		_, err := s.invoke(kind.service, "Delete", map[string]any{"id": id})
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// The session's ticket is the only credential of a second connection. What `--input` holds is typed once it is connected;
// the machine's answers are read up to the text of `--until`.
func (s *session) console(console, name string, options map[string]string) error {
	found, err := s.list("osac.public.v1.ComputeInstances", "computeinstance", byName(name), 2)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("compute instance '%s' not found", name)
	}
	response, err := s.invoke("osac.public.v1.ConsoleSessions", "Create", map[string]any{"object": map[string]any{
		"resource_type": "CONSOLE_RESOURCE_TYPE_COMPUTE_INSTANCE",
		"resource_id":   get(found[0], "id").String(),
		"type":          "CONSOLE_TYPE_" + strings.ToUpper(console),
		"client_id":     "019a0000-0000-7000-8000-000000000000",
	}})
	if err != nil {
		return err
	}
	s.token = get(response, "object", "ticket").String()
	if err := s.connect(true); err != nil {
		return err
	}
	method, err := s.method("osac.public.v1.ConsoleProxy", "Connect")
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	both := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	stream, err := s.conn.NewStream(limited, both, "/osac.public.v1.ConsoleProxy/Connect")
	if err != nil {
		return err
	}
	for {
		message := dynamicpb.NewMessage(method.Output())
		if err := stream.RecvMsg(message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		payload := message.WhichOneof(method.Output().Oneofs().ByName("payload"))
		if payload != nil && payload.Name() == "status" {
			status := message.Get(payload).Message()
			state := get(status, "state").Enum()
			s.result.Rows = append(s.result.Rows, []string{strconv.Itoa(int(state)), get(status, "message").String()})
			if state != 2 {
				continue
			}
			for typed := []byte(options["--input"]); len(typed) > 0; typed = typed[min(len(typed), 256):] {
				input := map[string]any{"input": map[string]any{"data": typed[:min(len(typed), 256)]}}
				request, err := s.request(method, input)
				if err != nil {
					return err
				}
				if err := stream.SendMsg(request); err != nil {
					return err
				}
			}
			continue
		}
		s.result.Text += string(get(message, "output", "data").Bytes())
		if strings.Contains(s.result.Text, options["--until"]) {
			if err := stream.CloseSend(); err != nil {
				return err
			}
		}
	}
}
