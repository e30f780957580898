import { expect } from 'chai';
import fc from 'fast-check';
import { readConfig, BadSetting, settings } from '../../../src/config.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { INHERITED_NAMES } from '../../support/arbitraries/hostile-names.ts';
import {
  callerOf,
  PRIVATE,
  PUBLIC,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { cases, check, checkAsync } from '../../support/property.ts';
import { PRIVATE_WATCH, PUBLIC_WATCH, watch } from '../../support/http/watch-client.ts';

const NAMES = [
  ...new Set([
    ...INHERITED_NAMES,
    ...Object.getOwnPropertyNames(Object.prototype),
    ...Object.getOwnPropertyNames(Function.prototype),
    'prototype',
  ]),
];
const name = fc.constantFrom(...NAMES);

/** What every object has: a parser that writes into it changes this. */
const inherited = (): string =>
  JSON.stringify(
    [Object.prototype, Function.prototype, Array.prototype, String.prototype].map((prototype) =>
      Reflect.ownKeys(prototype).map((key) => [
        String(key),
        typeof Object.getOwnPropertyDescriptor(prototype, key)?.value,
      ]),
    ),
  );

/** JSON with such a name as a key of its own. */
const keyed = (key: string, value: unknown): object => Object.fromEntries([[key, value]]);

const condition = (root: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      name,
      name,
      fc.constantFrom(
        (n: string) => `${root}.${n}() == 'x'`,
        (n: string) => `${root}.id.${n}('x')`,
        (n: string) => `${n}(${root}.id) == 'x'`,
        (n: string) => `${n}()`,
        (n: string) => `${n} == 'x'`,
        (n: string) => `${root}.${n} == 'x'`,
        (n: string) => `${root}['${n}'] == 'x'`,
        (n: string) => `${root}.metadata.labels['${n}'] == 'x'`,
        (n: string) => `'${n}' in ${root}.metadata.labels`,
        (n: string) => `has(${root}.metadata.labels.${n})`,
        (n: string) => `has(${root}.${n})`,
        (n: string) => `${root}.id in ['${n}']`,
        (n: string) => `${root}.status.state == ${n}`,
        (n: string) => `${root}.type == ${n}`,
        (n: string) => `${root}.spec.node_sets['${n}'].size == 1`,
        (n: string) => `${root}.metadata.labels.exists(${n}, true)`,
        (n: string, m: string) => `${n}.${m}() != now.${n}()`,
        (n: string, m: string) => `${n}{${m}: 1} == ${root}`,
        (n: string, m: string) => `${root}.cluster.${n}.${m}() > 1`,
      ),
    )
    .map(([n, m, write]) => write(n, m));
const filter = (root: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.array(condition(root), { minLength: 1, maxLength: 3 }),
      fc.constantFrom(' && ', ' || '),
      fc.boolean(),
    )
    .map(([conditions, join, negated]) => `${negated ? '!' : ''}(${conditions.join(join)})`);

const body = fc
  .tuple(name, name)
  .chain(([n, m]) =>
    fc.constantFrom<object>(
      keyed(n, keyed(m, 1)),
      { metadata: keyed(n, m) },
      { id: n, metadata: { name: 'x', labels: keyed(n, m) } },
      { metadata: { name: 'x', annotations: keyed(n, m) } },
      { metadata: { name: 'x', tenant: n, project: m } },
      { metadata: { name: 'x' }, spec: keyed(n, keyed(m, {})) },
      { metadata: { name: 'x' }, spec: { template: { id: n, name: m } } },
      { metadata: { name: 'x' }, spec: { template: keyed(n, m) } },
      { metadata: { name: 'x' }, spec: { node_sets: keyed(n, keyed(m, 1)) } },
      { metadata: { name: 'x' }, spec: { template_parameters: keyed(n, { '@type': m }) } },
      { metadata: { name: 'x' }, data: keyed(n, 'dg==') },
      { '@type': n, metadata: { name: 'x' } },
    ),
  );
const order = fc
  .tuple(name, name, fc.constantFrom('', ' desc', ','))
  .chain(([n, m, end]) =>
    fc.constantFrom(
      `${n}${end}`,
      `this.${n}.${m}${end}`,
      `metadata.labels['${n}']${end}`,
      `metadata.${n} ${m}`,
    ),
  );
const mask = fc
  .tuple(name, name)
  .chain(([n, m]) =>
    fc.constantFrom(
      n,
      `${n}.${m}`,
      `metadata.labels.${n}`,
      `spec.${n}`,
      `spec.node_sets.${n}.${m}`,
      `metadata.${n},${m}`,
    ),
  );

describe('names that every object inherits, wherever a caller may write one', () => {
  let service: TestService;
  let admin: Caller;
  let token: string;
  let cluster: string;
  let untouched: string;
  const collections = kinds
    .filter(({ methods }) => methods.public.length > 0)
    .map(({ collection }) => collection);
  const collection = fc.constantFrom(...collections);
  const surface = fc.constantFrom(PUBLIC, PRIVATE);

  before(async () => {
    service = await startTestService({ audit: { signs: false, exports: false } });
    token = await service.token({ user: 'root', admin: true });
    admin = callerOf(service, token);
    await seedCatalogue(admin);
    const ordered = await admin('POST', `${PRIVATE}/clusters`, {
      metadata: { name: 'there', tenant: 't1' },
      spec: { template: { id: 'osac.templates.small' } },
    });
    cluster = textAt(ordered.json, 'id');
    untouched = inherited();
  });
  after(() => service.close());

  const answered = async (
    verb: string,
    path: string,
    sent?: object,
    headers: Record<string, string> = {},
  ) => {
    const reply = await admin(verb, path, sent, headers);
    const said = `${verb} ${decodeURIComponent(path)} ${JSON.stringify(sent)} ${JSON.stringify(headers)}: ${reply.text}`;
    expect(reply.status, said).not.to.equal(500);
    expect(inherited(), said).to.equal(untouched);
    return reply;
  };
  const query = (values: Record<string, string>): string => new URLSearchParams(values).toString();

  it('in filters and orders of every list', () =>
    checkAsync(
      fc.asyncProperty(surface, collection, filter('this'), order, async (prefix, where, asked, by) => {
        await answered('GET', `${prefix}/${where}?${query({ filter: asked })}`);
        await answered('GET', `${prefix}/${where}?${query({ order: by })}`);
      }),
      { numRuns: cases(100) },
    ));

  it('in filters of watches', () =>
    checkAsync(
      fc.asyncProperty(fc.constantFrom(PRIVATE_WATCH, PUBLIC_WATCH), filter('event'), async (path, asked) => {
        const watching = await watch(service, token, `${path}?${query({ filter: asked })}`);
        try {
          expect(watching.status, `${asked}: ${watching.text()}`).not.to.equal(500);
          expect(inherited(), asked).to.equal(untouched);
        } finally {
          watching.close();
        }
      }),
      { numRuns: cases(60) },
    ));

  it('in bodies, update masks and dry runs', () =>
    checkAsync(
      fc.asyncProperty(
        surface,
        collection,
        body,
        mask,
        fc.boolean(),
        async (prefix, where, sent, paths, dry) => {
          const headers: Record<string, string> = dry ? { 'x-dry-run': 'true' } : {};
          await answered('POST', `${prefix}/${where}`, sent, headers);
          await answered('PATCH', `${prefix}/clusters/${cluster}`, sent, headers);
          await answered(
            'PATCH',
            `${prefix}/clusters/${cluster}?${query({ update_mask: paths })}`,
            sent,
            headers,
          );
        },
      ),
      { numRuns: cases(100) },
    ));

  it('in paths, parameters and headers', () =>
    checkAsync(
      fc.asyncProperty(
        fc
          .tuple(name, name)
          .chain(([n, m]) =>
            fc.constantFrom<readonly [string, string, Record<string, string>?]>(
              ['GET', `${PUBLIC}/${n}`],
              ['GET', `${PUBLIC}/clusters/${n}`],
              ['GET', `${PUBLIC}/clusters/${n}/${m}`],
              ['GET', `${PUBLIC}/clusters/${cluster}/${m}`],
              ['DELETE', `${PRIVATE}/host_types/${n}`],
              ['GET', `${PUBLIC}/clusters?${query({ [n]: m })}`],
              ['GET', `${PUBLIC}/clusters?${query({ limit: n, offset: m })}`],
              ['GET', `${PUBLIC}/clusters/${cluster}?${query({ as_of: n })}`],
              ['GET', `/api/ledger/v1/${n}`],
              ['GET', `/api/ledger/v1/projections/${n}/digest`],
              ['POST', `/api/ledger/v1/projections/${n}/rebuild`],
              ['GET', `/api/ledger/v1/orders/${n}?${query({ [m]: n })}`],
              ['GET', `/api/ledger/v1/events?${query({ type: n, stream: m })}`],
              ['GET', `/api/ledger/v1/usage?${query({ [n]: m, kind: n })}`],
              ['GET', `/api/audit/v1/resources/${n}/${m}`],
              ['GET', `/api/audit/v1/resources/${n}/${m}/events`],
              ['GET', `/api/audit/v1/events?${query({ kind: n, type: m })}`],
              ['GET', `/api/audit/v1/events?${query({ [n]: m })}`],
              ['GET', `/docs/${n}`],
              ['GET', `/${n}.json`],
              ['GET', `${PUBLIC}/clusters`, { [n.replaceAll('_', '-') === n ? n : 'x-n']: m }],
              ['GET', `${PUBLIC}/clusters`, { accept: n, 'accept-encoding': m, 'if-none-match': n }],
              ['DELETE', `${PUBLIC}/clusters/${n}`, { 'idempotency-key': n, 'x-ledger-ticket': m }],
              ['DELETE', `${PUBLIC}/clusters/${n}`, { 'if-match': `"${m}-1"`, 'x-dry-run': n }],
              ['GET', `${PUBLIC}/clusters`, { authorization: `${n} ${m}` }],
              ['GET', `${PUBLIC}/clusters`, { 'x-ledger-min-position': n, traceparent: m }],
            ),
          ),
        async ([verb, path, headers]) => {
          await answered(verb, path, undefined, headers);
        },
      ),
      { numRuns: cases(100) },
    ));

  it('in settings', () => {
    check(
      fc.property(name, fc.constantFrom(...settings), (n, { variable }) => {
        try {
          readConfig({ [variable]: n, [`LEDGER_${n}`]: n, ...keyed(n, n) });
        } catch (error) {
          expect(error).to.be.instanceOf(BadSetting);
        }
        try {
          readConfig({ LEDGER_TRUSTED_ISSUERS: `https://${n}.example=${n};${n}`, LEDGER_ROLES: `api,${n}` });
        } catch (error) {
          expect(error).to.be.instanceOf(BadSetting);
        }
        expect(inherited()).to.equal(untouched);
      }),
    );
  });
});
