import { readFileSync } from 'node:fs';
import { create, createFileRegistry, toBinary, type FileRegistry } from '@bufbuild/protobuf';
import {
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  EnumValueDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
  MethodDescriptorProtoSchema,
  OneofDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
  type DescriptorProto,
  type FileDescriptorProto,
  type FileDescriptorSet,
} from '@bufbuild/protobuf/wkt';
import { parse } from 'yaml';
import { file_google_api_httpbody } from '../../../src/gen/google/api/httpbody_pb.ts';

export const SURFACES = ['public', 'private'] as const;
export type Surface = (typeof SURFACES)[number];

type Fields = Readonly<Record<string, string>>;
type Shape = { readonly request: Fields; readonly response: Fields };
/** `returns`: a message of another package, in place of the response. */
type How = { readonly streams?: boolean; readonly sends?: boolean; readonly returns?: string };
type Method = Shape & How & { readonly only?: Surface };
type Table = {
  readonly messages: Readonly<Record<string, Fields>>;
  readonly private_only: readonly string[];
  readonly public_only: readonly string[];
  readonly enums: Readonly<Record<string, readonly string[]>>;
  readonly objects: Readonly<Record<string, string>>;
  readonly not_public: readonly string[];
  readonly read_only_in_public: readonly string[];
  readonly unordered: Readonly<Record<Surface, readonly string[]>>;
  readonly shapes: Readonly<Record<string, Shape>>;
  readonly methods: Readonly<Record<string, Method>>;
};

const SCALARS: Readonly<Record<string, Type>> = {
  string: Type.STRING,
  bool: Type.BOOL,
  bytes: Type.BYTES,
  int32: Type.INT32,
  int64: Type.INT64,
};
const WELL_KNOWN = ['Any', 'FieldMask', 'Timestamp', 'Value'];
const WELL_KNOWN_FILES = [
  file_google_protobuf_any,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  // Only inside of `Any`.
  file_google_protobuf_duration,
  file_google_protobuf_wrappers,
  file_google_api_httpbody,
];
const LOCAL_REFERENCE: Fields = { id: '1 string', name: '2 string' };
const REFERENCE: Fields = { ...LOCAL_REFERENCE, project: '3 string', shared: '4 bool' };

const FIELD =
  /^(?<number>\d+)(?:\/(?<other>\d+|-))? (?<type>map<string, \w+>|\w+)(?<many>\[\])?(?: (?<optional>optional)| oneof (?<oneof>\w+))?$/;

/** A field of the table as one surface has it; undefined: it lacks it. */
const fieldOf = (text: string, surface: Surface) => {
  const [numbers = '', ...rest] = text.split(' ');
  const [first = '', second = first] = numbers.split('/');
  const number = surface === 'public' ? first : second;
  if (number === '-') return undefined;
  const parts = FIELD.exec(`${number} ${rest.join(' ')}`)?.groups;
  if (parts === undefined) throw new Error(`fixtures/osac/wire.yaml: "${text}" is no field`);
  const { type = '', many, optional, oneof } = parts;
  return {
    number: Number(number),
    type,
    many: many !== undefined,
    optional: optional !== undefined,
    ...(oneof === undefined ? {} : { oneof }),
  };
};

/** OSAC's messages and services as `fixtures/osac/wire.yaml` has them: what a client of OSAC was compiled from. */
export const osacWire = (): FileDescriptorSet => {
  const table = parse(readFileSync('fixtures/osac/wire.yaml', 'utf8')) as Table;
  return create(FileDescriptorSetSchema, {
    file: [
      ...WELL_KNOWN_FILES.map(({ proto }) => proto),
      ...SURFACES.map((surface) => fileOf(table, surface)),
    ],
  });
};

export const osacRegistry = (): FileRegistry => createFileRegistry(osacWire());
export const osacImage = (): Uint8Array => toBinary(FileDescriptorSetSchema, osacWire());

const fileOf = (table: Table, surface: Surface): FileDescriptorProto => {
  const pkg = `osac.${surface}.v1`;
  const lacking = surface === 'public' ? table.private_only : table.public_only;
  const enums = Object.keys(table.enums).filter((name) => !lacking.includes(name));
  const messages = new Map<string, DescriptorProto>();

  const typeOf = (type: string): { type: Type; typeName?: string } => {
    const scalar = SCALARS[type];
    if (scalar !== undefined) return { type: scalar };
    if (WELL_KNOWN.includes(type)) return { type: Type.MESSAGE, typeName: `.google.protobuf.${type}` };
    if (enums.includes(type)) return { type: Type.ENUM, typeName: `.${pkg}.${type}` };
    if (type.endsWith('Reference')) add(type, type.endsWith('LocalReference') ? LOCAL_REFERENCE : REFERENCE);
    return { type: Type.MESSAGE, typeName: `.${pkg}.${type}` };
  };

  const add = (name: string, fields: Fields, object = ''): void => {
    if (messages.has(name)) return;
    const message = create(DescriptorProtoSchema, { name });
    messages.set(name, message);
    const oneofs: string[] = [];
    const own = Object.entries(fields).flatMap(([field, text]) => {
      const found = fieldOf(text.replace('{object}', object), surface);
      return found === undefined ? [] : [{ field, ...found }];
    });
    // Those that a field knows to be set by come last (protobuf's rule).
    for (const { oneof } of own) if (oneof !== undefined && !oneofs.includes(oneof)) oneofs.push(oneof);
    for (const { field, number, type, many, optional, oneof } of own) {
      const [, value] = /^map<string, (\w+)>$/.exec(type) ?? [];
      const synthetic = optional ? `_${field}` : undefined;
      if (synthetic !== undefined) oneofs.push(synthetic);
      const group = oneof ?? synthetic;
      const entry = value === undefined ? undefined : entryOf(field, typeOf(value));
      if (entry !== undefined) message.nestedType.push(entry);
      message.field.push(
        create(FieldDescriptorProtoSchema, {
          name: field,
          jsonName: field.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
          number,
          label: many || entry !== undefined ? Label.REPEATED : Label.OPTIONAL,
          ...(entry === undefined
            ? typeOf(type)
            : { type: Type.MESSAGE, typeName: `.${pkg}.${name}.${entry.name}` }),
          ...(group === undefined ? {} : { oneofIndex: oneofs.indexOf(group) }),
          ...(synthetic === undefined ? {} : { proto3Optional: true }),
        }),
      );
    }
    message.oneofDecl = oneofs.map((each) => create(OneofDescriptorProtoSchema, { name: each }));
  };

  for (const [name, fields] of Object.entries(table.messages)) {
    const there = Object.values(fields).some((text) => fieldOf(text, surface) !== undefined);
    if (there || (Object.keys(fields).length === 0 && !lacking.includes(name))) add(name, fields);
  }

  const services = new Map<string, (How & { name: string })[]>();
  const method = (
    service: string,
    name: string,
    { request, response }: Shape,
    object = '',
    how: How = {},
  ) => {
    add(`${service}${name}Request`, request, object);
    if (how.returns === undefined) add(`${service}${name}Response`, response, object);
    services.set(service, [...(services.get(service) ?? []), { ...how, name }]);
  };
  for (const [service, object] of Object.entries(table.objects)) {
    if (surface === 'public' && table.not_public.includes(service)) continue;
    const readOnly = surface === 'public' && table.read_only_in_public.includes(service);
    for (const [name, shape] of Object.entries(table.shapes)) {
      if (name === 'Signal' && surface === 'public') continue;
      if (readOnly && name !== 'List' && name !== 'Get') continue;
      const { order: _, ...unordered } = shape.request;
      const request = table.unordered[surface].includes(service) ? unordered : shape.request;
      method(service, name, { ...shape, request }, object);
    }
  }
  for (const [path, { only, request, response, ...how }] of Object.entries(table.methods)) {
    const [service = '', name = ''] = path.split('.');
    if ((only ?? surface) === surface) method(service, name, { request, response }, '', how);
  }

  return create(FileDescriptorProtoSchema, {
    name: `osac/${surface}/v1/wire.proto`,
    package: pkg,
    syntax: 'proto3',
    dependency: WELL_KNOWN_FILES.map(({ proto }) => proto.name),
    messageType: [...messages.values()],
    enumType: enums.map((name) =>
      create(EnumDescriptorProtoSchema, {
        name,
        value: (table.enums[name] ?? []).flatMap((text, number) => {
          const [value = '', mark] = text.split(' ');
          if (mark === 'private' && surface === 'public') return [];
          return [create(EnumValueDescriptorProtoSchema, { name: value, number })];
        }),
      }),
    ),
    service: [...services].map(([name, methods]) =>
      create(ServiceDescriptorProtoSchema, {
        name,
        method: methods.map((each) =>
          create(MethodDescriptorProtoSchema, {
            name: each.name,
            inputType: `.${pkg}.${name}${each.name}Request`,
            outputType: `.${each.returns ?? `${pkg}.${name}${each.name}Response`}`,
            serverStreaming: each.streams === true,
            clientStreaming: each.sends === true,
          }),
        ),
      }),
    ),
  });
};

const entryOf = (field: string, value: { type: Type; typeName?: string }): DescriptorProto =>
  create(DescriptorProtoSchema, {
    name: `${field.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())}Entry`,
    options: { mapEntry: true },
    field: [
      create(FieldDescriptorProtoSchema, {
        name: 'key',
        jsonName: 'key',
        number: 1,
        label: Label.OPTIONAL,
        type: Type.STRING,
      }),
      create(FieldDescriptorProtoSchema, {
        name: 'value',
        jsonName: 'value',
        number: 2,
        label: Label.OPTIONAL,
        ...value,
      }),
    ],
  });
