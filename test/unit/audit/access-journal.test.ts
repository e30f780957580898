import { expect } from 'chai';
import { createAccessJournal } from '../../../src/app/audit/access-journal.ts';
import type { Encrypted } from '../../../src/domain/personal.ts';
import { systemContext, type CommandContext, type EventMetadata } from '../../../src/app/log/metadata.ts';

describe('the journal of looks', () => {
  it('tells the tenants of one look beside each other, but never more than sixteen at a time', async () => {
    const streams: string[] = [];
    const waiting: (() => void)[] = [];
    let most = 0;
    const { notice } = createAccessJournal({
      journal: {
        append: (stream) => {
          streams.push(stream);
          return new Promise((resolve) => {
            waiting.push(() => resolve('1'));
            most = Math.max(most, waiting.length);
          });
        },
      },
      codec: { encode: ({ type }, id) => ({ id, type, data: '{}', metadata: '{}' }) },
      clock: { now: () => '2026-11-21T12:00:00.000Z' },
      instance: 'test',
    });
    const tenants = new Map(Array.from({ length: 50 }, (_, n) => [`t${n}`, undefined] as const));
    const context = systemContext('0193a1b2-0000-7000-8000-0000000000aa', 'audit', {});
    let done = false;
    const told = notice({ what: 'events', tenants }, context).then(() => (done = true));
    for (let turn = 0; turn < 1_000 && !done; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      waiting.shift()?.();
    }
    await told;
    expect(new Set(streams).size).to.equal(50);
    expect(streams).to.have.length(50);
    expect(most).to.equal(16);
  });

  it('tells the tenants of the subject alone, the reader everything: name, address, ticket and token', async () => {
    const written = new Map<string, EventMetadata>();
    const { record, notice } = createAccessJournal({
      journal: {
        append: (stream, [entry]) => {
          written.set(stream, JSON.parse(entry?.metadata ?? '{}') as EventMetadata);
          return Promise.resolve('1');
        },
      },
      codec: {
        encode: ({ type }, id, metadata) => ({ id, type, data: '{}', metadata: JSON.stringify(metadata) }),
      },
      clock: { now: () => '2026-11-21T12:00:00.000Z' },
      instance: 'test',
    });
    const sealed = (ct: string): Encrypted => ({ alg: 'A256GCM', keyId: 'k', nonce: 'n', ct, tag: 't' });
    const context: CommandContext = {
      ...systemContext('0193a1b2-0000-7000-8000-0000000000aa', 'audit', {}),
      tenant: 'auditors',
      requestHash: 'f00d',
      ticket: 'CASE-7',
      source: sealed('10.0.0.7 curl'),
      actor: {
        subjectId: 'audrey',
        roles: ['auditor'],
        authMethod: 'jwt',
        tokenIdHash: 'beef',
        personal: sealed('Audrey'),
      },
    };
    await record({ what: 'events', query: {}, tenants: ['acme'] }, context);
    await notice({ what: 'events', tenants: new Map([['acme', undefined]]) }, context);
    const [own, told] = ['auditAccess-auditors.2026-11-21', 'auditAccess-acme.2026-11-21'].map((stream) =>
      written.get(stream),
    );
    expect(own).to.deep.include({
      tenant: 'auditors',
      ticket: 'CASE-7',
      source: context.source,
      actor: context.actor,
      requestHash: 'f00d',
    });
    expect(told).to.deep.include({
      tenant: 'acme',
      actor: { subjectId: 'audrey', roles: ['auditor'], authMethod: 'jwt' },
      requestHash: '',
    });
    expect(told).to.not.have.any.keys('ticket', 'source');
  });

  it('says when one of them could not be told', async () => {
    let appended = 0;
    const { notice } = createAccessJournal({
      journal: {
        append: () => {
          appended += 1;
          return appended === 3 ? Promise.reject(new Error('full')) : Promise.resolve('1');
        },
      },
      codec: { encode: ({ type }, id) => ({ id, type, data: '{}', metadata: '{}' }) },
      clock: { now: () => '2026-11-21T12:00:00.000Z' },
      instance: 'test',
    });
    const tenants = new Map(Array.from({ length: 50 }, (_, n) => [`t${n}`, undefined] as const));
    const context = systemContext('0193a1b2-0000-7000-8000-0000000000aa', 'audit', {});
    const failed = await notice({ what: 'events', tenants }, context).catch((error: unknown) => error);
    expect(String(failed)).to.equal('Error: full');
    expect(appended).to.be.lessThan(50);
  });
});
