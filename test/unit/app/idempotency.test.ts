import { expect } from 'chai';
import { parseIdempotencyKey, createRequestHash } from '../../../src/app/commands/command.ts';
import { keyedCommandId, keyedCreationId } from '../../../src/app/log/identifiers.ts';

describe('Idempotency-Key', () => {
  for (const [header, key] of [
    ['"order-4711"', 'order-4711'],
    ['  "order 4711 with spaces"  ', 'order 4711 with spaces'],
    ['"a\\"quote\\\\"', 'a"quote\\'],
    ['"with-parameter";v=1', 'with-parameter'],
    ['order-4711', 'order-4711'],
    ['0190fdc2-bf52-71b8-8c36-977f348f4436', '0190fdc2-bf52-71b8-8c36-977f348f4436'],
    ['4711', '4711'],
    [`"${'x'.repeat(255)}"`, 'x'.repeat(255)],
  ] as const) {
    it(`reads ${header.slice(0, 40)}`, () => {
      expect(parseIdempotencyKey(header)).to.deep.equal({ ok: true, key });
    });
  }

  it('may be absent', () => {
    expect(parseIdempotencyKey(undefined)).to.deep.equal({ ok: true, key: undefined });
  });

  for (const [header, problem] of [
    ['', 'cannot be read'],
    ['""', 'is empty'],
    ['"open', 'cannot be read'],
    ['"one", "two"', 'cannot be read'],
    ['one two', 'cannot be read'],
    ['a,b', 'cannot be read'],
    ['"ä"', 'cannot be read'],
    ['ü', 'cannot be read'],
    ['"line\nbreak"', 'cannot be read'],
    ['x'.repeat(256), '256 characters'],
  ] as const) {
    it(`says what is wrong with ${JSON.stringify(header.slice(0, 20))}`, () => {
      const parsed = parseIdempotencyKey(header);
      expect(parsed.ok ? parsed.key : parsed.message).to.include(problem);
      expect(parsed.ok).to.equal(false);
    });
  }
});

describe('identity of a keyed request', () => {
  const scope = { tenant: 'acme', subjectId: 's1', method: 'POST', route: '/clusters' };

  it('is the same for a repeated key and different for everything else', () => {
    const of = (more: Partial<typeof scope>, key = 'k') => ({
      commandId: keyedCommandId({ ...scope, ...more }, key),
      creationId: keyedCreationId({ ...scope, ...more }, key),
    });
    expect(of({})).to.deep.equal(of({}));
    const all = [
      of({}),
      of({ tenant: 'globex' }),
      of({ subjectId: 's2' }),
      of({ method: 'PATCH' }),
      of({ route: '/hubs' }),
      of({}, 'other'),
      // Parts must not run into each other.
      of({ tenant: 'acmes', subjectId: '1' }),
    ];
    expect(new Set(all.flatMap((one) => [one.commandId, one.creationId])).size).to.equal(2 * all.length);
  });

  it('stays what it was: the ids are in the log', () => {
    expect(keyedCommandId(scope, 'k')).to.equal('3d8e9438-9370-53da-a0eb-4f9ce82df135');
    expect(keyedCreationId(scope, 'k')).to.equal('3f9209c8-eb6f-55fa-89fc-f09fa9f0c87c');
  });
});

describe('request hash', () => {
  const hash = createRequestHash(Buffer.alloc(32, 1));
  const request = { method: 'POST', route: '/clusters', body: { a: 1, b: { c: 'ü', d: [1, 2] } } };

  it('is the same for every spelling of a body', () => {
    expect(hash({ ...request, body: { b: { d: [1, 2], c: 'ü' }, a: 1 } })).to.equal(hash(request));
    expect(hash(request)).to.match(/^[0-9a-f]{64}$/);
  });

  it('differs by method, route, any value and the key of the deployment', () => {
    const all = [
      hash(request),
      hash({ ...request, method: 'PATCH' }),
      hash({ ...request, route: '/hubs' }),
      hash({ ...request, body: { ...request.body, a: 2 } }),
      hash({ ...request, body: { ...request.body, b: { ...request.body.b, d: [2, 1] } } }),
      hash({ ...request, body: undefined }),
      createRequestHash(Buffer.alloc(32, 2))(request),
    ];
    expect(new Set(all).size).to.equal(all.length);
  });
});
