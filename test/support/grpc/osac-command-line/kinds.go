package main

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A kind of objects: its service, and the message of its objects.
type kind struct {
	service string
	object  protoreflect.MessageDescriptor
}

func (k kind) name() string { return strings.ToLower(string(k.object.Name())) }

var standard = []protoreflect.Name{"List", "Get", "Create", "Update", "Delete"}

// Kinds that no tenant owns: their lists are not narrowed to the tenant that was chosen.
var unscoped = []string{
	"clusterversion", "externalippool", "hosttype", "hub", "identityprovider", "instancetype", "networkclass", "role",
	"storagebackend", "storagetier", "tenant", "user",
}

// What a table looks up after the list, by kind: the field of the reference, and the service of what it names.
var lookups = map[string][]struct{ field, service string }{
	"cluster":            {{"template", "ClusterTemplates"}, {"version", "ClusterVersions"}},
	"clustercatalogitem": {{"template", "ClusterTemplates"}},
	"computeinstance":    {{"template", "ComputeInstanceTemplates"}},
	"subnet":             {{"virtual_network", "VirtualNetworks"}},
	"securitygroup":      {{"virtual_network", "VirtualNetworks"}},
	"natgateway":         {{"virtual_network", "VirtualNetworks"}, {"external_ip", "ExternalIPs"}},
	"user":               {{"tenant", "Tenants"}},
}

// An option that names an object, the service that knows it, and the field that refers to it.
type reference struct{ option, service, field string }

// What `create` of a kind sends: references that it looks up first, in this order, and options that are fields of the spec.
type creation struct {
	service    string
	references []reference
	fields     []string
	// Fields that stand in a message of the spec.
	inside map[string]string
	// Options that name an object which is not looked up: sent as `id` or as `name` of the field.
	asID, asName map[string]string
	// The subnet of a machine is sent as it was typed, too.
	attached bool
	// The tenant that was chosen is not sent.
	untenanted bool
}

var creations = map[string]creation{
	"virtualnetwork": {
		service: "osac.public.v1.VirtualNetworks", fields: []string{"ipv4_cidr", "ipv6_cidr"}, untenanted: true,
	},
	"subnet": {
		service:    "osac.public.v1.Subnets",
		references: []reference{{"--virtual-network", "VirtualNetworks", "virtual_network"}},
		fields:     []string{"ipv4_cidr", "ipv6_cidr"},
	},
	"securitygroup": {
		service:    "osac.public.v1.SecurityGroups",
		references: []reference{{"--virtual-network", "VirtualNetworks", "virtual_network"}},
		fields:     []string{"ingress", "egress"},
	},
	"externalip": {
		service:    "osac.public.v1.ExternalIPs",
		references: []reference{{"--pool", "ExternalIPPools", "pool"}},
	},
	"natgateway": {
		service: "osac.public.v1.NATGateways",
		references: []reference{
			{"--virtual-network", "VirtualNetworks", "virtual_network"},
			{"--external-ip", "ExternalIPs", "external_ip"},
		},
	},
	"externalipattachment": {
		service: "osac.public.v1.ExternalIPAttachments",
		references: []reference{
			{"--external-ip", "ExternalIPs", "external_ip"},
			{"--cluster", "Clusters", "cluster"},
		},
		fields: []string{"target_endpoint"},
	},
	"computeinstance": {
		service:    "osac.public.v1.ComputeInstances",
		references: []reference{{"--template", "ComputeInstanceTemplates", "template"}},
		fields:     []string{"run_strategy", "ssh_public_key", "user_data"},
		asID:       map[string]string{"--catalog-item": "catalog_item"},
		asName:     map[string]string{"--instance-type": "instance_type", "--disk-image": "disk_image"},
		attached:   true,
	},
	"storagebackend": {
		service:    "osac.private.v1.StorageBackends",
		fields:     []string{"provider", "description", "endpoint", "username", "password"},
		inside:     map[string]string{"username": "credentials", "password": "credentials"},
		untenanted: true,
	},
}

// The kind of a name: lower-case message or service, or full message name. With --private the private ones come first.
func (s *session) kind(name string) (kind, error) {
	surfaces := []string{"public"}
	if s.private {
		surfaces = []string{"private", "public"}
	}
	for _, surface := range surfaces {
		if found, there := s.kindOn(surface, name); there {
			return found, nil
		}
	}
	return kind{}, fmt.Errorf("there is no type '%s'", name)
}

func (s *session) kindOn(surface, name string) (found kind, there bool) {
	s.files.RangeFilesByPackage(protoreflect.FullName("osac."+surface+".v1"), func(file protoreflect.FileDescriptor) bool {
		services := file.Services()
		for i := range services.Len() {
			service := services.Get(i)
			if slices.ContainsFunc(standard, func(method protoreflect.Name) bool {
				return service.Methods().ByName(method) == nil
			}) {
				continue
			}
			object := service.Methods().ByName("Get").Output().Fields().ByName("object").Message()
			names := []string{strings.ToLower(string(object.Name())), strings.ToLower(string(service.Name())), string(object.FullName())}
			if slices.Contains(names, name) {
				found, there = kind{string(service.FullName()), object}, true
			}
		}
		return true
	})
	return found, there
}

// The surface that a service of another kind is asked on.
func (s *session) service(name string) string {
	if s.private {
		return "osac.private.v1." + name
	}
	return "osac.public.v1." + name
}

func quoted(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(texts, ", ")
}

func byName(name string) string {
	return fmt.Sprintf("this.id == %q || this.metadata.name == %q", name, name)
}

func byNames(names []string) string {
	return fmt.Sprintf("this.id in [%s] || this.metadata.name in [%s]", quoted(names), quoted(names))
}

// Objects of a service. `limit` 0: as many as the server gives.
func (s *session) list(service, kindName, filter string, limit int) ([]protoreflect.Message, error) {
	fields := map[string]any{}
	if s.tenant != "" && !slices.Contains(unscoped, kindName) {
		owned := fmt.Sprintf("this.metadata.tenant == %q", s.tenant)
		if filter == "" {
			filter = owned
		} else {
			filter = owned + " && (" + filter + ")"
		}
	}
	if filter != "" {
		fields["filter"] = filter
	}
	if limit > 0 {
		fields["limit"] = limit
	}
	response, err := s.invoke(service, "List", fields)
	if err != nil {
		return nil, err
	}
	items := get(response, "items").List()
	objects := make([]protoreflect.Message, items.Len())
	for i := range objects {
		objects[i] = items.Get(i).Message()
	}
	return objects, nil
}

// The one object of a name, as `describe`, `label`, `edit` and `scale` look for it.
func (s *session) one(kind kind, name string) (protoreflect.Message, error) {
	found, err := s.list(kind.service, kind.name(), byName(name), 2)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		s.result.Hint = fmt.Sprintf("%d objects of type %s match '%s'", len(found), kind.name(), name)
		return nil, fmt.Errorf("%s '%s' not found", kind.name(), name)
	}
	if kind.name() != "secret" {
		return found[0], nil
	}
	return s.read(kind, found[0])
}

func (s *session) read(kind kind, object protoreflect.Message) (protoreflect.Message, error) {
	response, err := s.invoke(kind.service, "Get", map[string]any{"id": get(object, "id").String()})
	if err != nil {
		return nil, err
	}
	return get(response, "object").Message(), nil
}
