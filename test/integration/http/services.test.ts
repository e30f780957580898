import { readFileSync } from 'node:fs';
import { Metadata } from '@grpc/grpc-js';
import { expect } from 'chai';
import { parse } from 'yaml';
import { kinds } from '../../../src/domain/kinds.ts';
import { files } from '../../../src/gen/osac/files.ts';
import { Code, grpcCaller, type GrpcCaller } from '../../support/grpc/caller.ts';
import { callerOf, type Caller } from '../../support/http/service.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';

const SURFACES = ['public', 'private'] as const;
type Surface = (typeof SURFACES)[number];
const PREFIX = { public: '/api/fulfillment/v1', private: '/api/private/v1' } as const;
type Methods = { readonly [surface in Surface]?: readonly string[] };
type Row = Required<Methods> & {
  readonly collection?: string;
  readonly paths?: { readonly [surface in Surface]?: { readonly [method: string]: string } };
  readonly unimplemented?: Methods;
  readonly left_out?: readonly string[];
  readonly wraps?: boolean;
  readonly sent?: object;
};
const TABLE = Object.entries(
  parse(readFileSync('fixtures/osac/services.yaml', 'utf8')) as { readonly [service: string]: Row },
);

type Method = {
  readonly name: string;
  readonly path: string;
  readonly rest?: { readonly verb: string; readonly at: string };
  readonly sent: object;
  readonly isServed: boolean;
};

const VERBS: { readonly [method: string]: readonly [verb: string, below: string] } = {
  List: ['GET', ''],
  Create: ['POST', ''],
  Get: ['GET', '/none'],
  Update: ['PATCH', '/none'],
  Delete: ['DELETE', '/none'],
};

const restOf = ({ collection, paths }: Row, surface: Surface, name: string): Method['rest'] => {
  const own = paths?.[surface]?.[name];
  if (own !== undefined) return { verb: 'GET', at: own.replace('{id}', 'none') };
  const [verb, below] = VERBS[name] ?? [];
  if (collection === undefined || verb === undefined) return undefined;
  return { verb, at: `${PREFIX[surface]}/${collection}${below}` };
};

const METHODS = TABLE.flatMap(([service, row]) =>
  SURFACES.flatMap((surface) =>
    row[surface]
      .filter((name) => row.left_out?.includes(name) !== true)
      .map((name): Method => {
        const rest = restOf(row, surface, name);
        return {
          name,
          path: `/osac.${surface}.v1.${service}/${name}`,
          ...(rest === undefined ? {} : { rest }),
          sent: row.sent ?? {},
          isServed: row.unimplemented?.[surface]?.includes(name) !== true,
        };
      }),
  ),
);

describe('the services of OSAC', () => {
  let whole: WholeService;
  let admin: Caller;
  let grpc: GrpcCaller;
  const credentials = new Metadata();
  before(async () => {
    whole = await createWholeService();
    await whole.start();
    const { url, grpc: address, token } = await whole.access({ sub: 'root', groups: ['admins'] });
    admin = callerOf({ url }, token);
    grpc = grpcCaller(address);
    credentials.set('authorization', `Bearer ${token}`);
  });
  after(async () => {
    grpc.close();
    await whole.dispose();
  });

  /** Nothing is sent; a stream is asked with a filter that it refuses. */
  const codeOf = (path: string): Promise<number> =>
    new Promise((resolve) => {
      const sent = path.endsWith('/Watch') ? Buffer.from([0x0a, 0x01, 0x28]) : Buffer.alloc(0);
      const same = (bytes: Buffer): Buffer => bytes;
      grpc.client
        .makeUnaryRequest(path, same, same, sent, credentials, () => undefined)
        .on('status', ({ code }: { readonly code: number }) => resolve(code));
    });

  it(`answer ${METHODS.length} methods over gRPC as they are declared`, async () => {
    const wrong: string[] = [];
    for (const { path, isServed } of METHODS)
      if (((await codeOf(path)) === Code.UNIMPLEMENTED) === isServed) wrong.push(path);
    expect(wrong).to.deep.equal([]);
  });

  it('answer them over REST', async () => {
    const wrong: string[] = [];
    for (const { rest, sent, isServed } of METHODS) {
      if (rest === undefined) continue;
      const { verb, at } = rest;
      const filter = at.includes('/events') ? '?filter=(' : '';
      const { status, json } = await admin(verb, at + filter, verb === 'GET' ? undefined : sent);
      const isUnknown = status === 404 && JSON.stringify(json['message']) === '"Not Found"';
      if (isUnknown || (status === 501) === isServed) wrong.push(`${verb} ${at}: ${status}`);
    }
    expect(wrong).to.deep.equal([]);
  });

  it('are known on no surface but their own', async () => {
    const wrong: string[] = [];
    for (const [name, { collection, ...row }] of TABLE)
      for (const surface of SURFACES) {
        if (row[surface].length > 0) continue;
        if ((await codeOf(`/osac.${surface}.v1.${name}/Get`)) !== Code.UNIMPLEMENTED)
          wrong.push(`${surface} ${name}`);
        if (collection === undefined) continue;
        const { status } = await admin('GET', `${PREFIX[surface]}/${collection}`);
        if (status !== 404) wrong.push(`${PREFIX[surface]}/${collection}: ${status}`);
      }
    expect(wrong).to.deep.equal([]);
  });

  it('are all that this service declares, with the same methods', () => {
    const declared = files.flatMap(({ services }) =>
      services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`)),
    );
    expect(declared.toSorted()).to.deep.equal(METHODS.map(({ path }) => path).toSorted());
    const rows = new Map(TABLE);
    for (const { service: name, collection, wrapsReplies = false } of kinds) {
      expect(rows.get(name)?.collection, name).to.equal(collection);
      expect(rows.get(name)?.wraps ?? false, name).to.equal(wrapsReplies);
    }
  });
});
