import { createRegistry, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { files } from '../../../src/gen/osac/files.ts';
import { osacRegistry, SURFACES } from '../../support/grpc/osac-wire.ts';

/** Our own fields in OSAC's messages are numbered from here. */
const OWN_NUMBERS = 1000;
/** Lists that ours can order and OSAC's cannot. */
const ORDERED_BY_OURS = /^osac\.(public|private)\.v1\.\w+ListRequest$/;

const formOf = (field: DescField): string => {
  const { proto } = field;
  const many = proto.label === 3 ? 'repeated ' : '';
  const presence = proto.proto3Optional ? 'optional ' : '';
  const oneof = field.oneof === undefined ? '' : ` in ${field.oneof.name}`;
  return `${field.number} ${many}${presence}${proto.type} ${proto.typeName}${oneof}`;
};

/** Messages that only our own fields of OSAC's messages lead to. */
const ownMessages = (messages: readonly DescMessage[]): ReadonlySet<string> => {
  const own = new Set<string>();
  const add = (message: DescMessage | undefined): void => {
    if (message === undefined || own.has(message.typeName)) return;
    own.add(message.typeName);
    for (const field of message.fields) add(field.message);
  };
  for (const { fields } of messages)
    for (const field of fields) if (field.number >= OWN_NUMBERS) add(field.message);
  return own;
};

const fieldsOf = (message: DescMessage): Map<string, string> =>
  new Map(message.fields.map((field) => [field.name, formOf(field)]));

describe("OSAC's table of messages", () => {
  const theirs = osacRegistry();
  const ours = createRegistry(...files);
  const isOurs = (typeName: string): boolean =>
    SURFACES.some((each) => typeName.startsWith(`osac.${each}.v1.`));

  it('names every message, enum and service that ours has', () => {
    const named = files.flatMap(({ messages, enums, services }) => [...messages, ...enums, ...services]);
    expect(named.length).to.be.greaterThan(400);
    const own = ownMessages(files.flatMap(({ messages }) => messages));
    const unknown = named.map(({ typeName }) => typeName).filter((name) => theirs.get(name) === undefined);
    expect(unknown.filter((name) => !own.has(name))).to.deep.equal([]);
  });

  it('gives each field of ours the same name, number, type and presence', () => {
    const differing: string[] = [];
    for (const message of files.flatMap(({ messages }) => messages)) {
      const known = theirs.getMessage(message.typeName);
      if (known === undefined) continue;
      const expected = fieldsOf(known);
      for (const [name, form] of fieldsOf(message)) {
        if (Number.parseInt(form, 10) >= OWN_NUMBERS) continue;
        if (name === 'order' && ORDERED_BY_OURS.test(message.typeName)) continue;
        if (expected.get(name) !== form)
          differing.push(`${message.typeName}.${name}: ${form}, in the table ${expected.get(name)}`);
      }
    }
    expect(differing).to.deep.equal([]);
  });

  it('has no field that ours lacks, but payloads of events of kinds that do not exist here', () => {
    const lacking: string[] = [];
    for (const message of files.flatMap(({ messages }) => messages)) {
      const own = fieldsOf(message);
      for (const field of theirs.getMessage(message.typeName)?.fields ?? []) {
        const payload = field.message?.typeName ?? '';
        const absentKind = message.name === 'Event' && isOurs(payload) && ours.get(payload) === undefined;
        if (!own.has(field.name) && !absentKind) lacking.push(`${message.typeName}.${field.name}`);
      }
    }
    expect(lacking).to.deep.equal([]);
  });

  it('gives each value of an enum the same number', () => {
    for (const { typeName, values } of files.flatMap(({ enums }) => enums)) {
      const numbers = theirs.getEnum(typeName)?.values.map(({ name, number }) => `${name} ${number}`);
      expect(
        values.map(({ name, number }) => `${name} ${number}`),
        typeName,
      ).to.deep.equal(numbers);
    }
  });

  it('gives each method the same messages, and streams where ours does', () => {
    let methods = 0;
    for (const service of files.flatMap(({ services }) => services))
      for (const { name, input, output, methodKind } of service.methods) {
        const known = theirs.getService(service.typeName)?.methods.find((method) => method.name === name);
        expect([known?.input.typeName, known?.output.typeName, known?.methodKind]).to.deep.equal([
          input.typeName,
          output.typeName,
          methodKind,
        ]);
        methods += 1;
      }
    expect(methods).to.be.greaterThan(150);
  });

  it('leaves out no method of a service that ours has', () => {
    const lacking = files
      .flatMap(({ services }) => services)
      .flatMap((service) =>
        (theirs.getService(service.typeName)?.methods ?? [])
          .filter(({ name }) => service.methods.every((method) => method.name !== name))
          .map(({ name }) => `${service.typeName}/${name}`),
      );
    expect(lacking).to.deep.equal([]);
  });
});
