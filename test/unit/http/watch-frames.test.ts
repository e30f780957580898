import { fromBinary, toJson } from '@bufbuild/protobuf';
import { expect } from 'chai';
import fc from 'fast-check';
import { kinds } from '../../../src/domain/kinds.ts';
import { WATCH_RESPONSES, type Surface } from '../../../src/http/osac/messages.ts';
import type { Framing } from '../../../src/http/osac/watch/rendered-change.ts';
import { createRenderer } from '../../../src/http/osac/watch/rendered-change.ts';
import { stopping } from '../../../src/http/osac/watch/endings.ts';
import { endFrame } from '../../../src/http/osac/watch/http-sink.ts';
import { chunkFor } from '../../../src/http/osac/watch/watcher.ts';
import { check } from '../../support/property.ts';

const render = createRenderer({
  kinds,
  formatId: ({ position, n }) => `${position}.${n}`,
  documentBefore: () => undefined,
  nowMs: () => 0,
});
const changeOf = (position: string, document: object, tenant = 't1') =>
  render({
    position,
    n: 0,
    kind: 'cluster',
    id: 'c1',
    tenant,
    type: 'updated',
    document: JSON.stringify(document),
  });
const groupOf = (surface: Surface, framing: Framing) => ({
  key: '',
  audience: { key: surface, surface, tenants: new Set(['t1']), kinds: new Set(['cluster']) },
  filter: undefined,
  framing,
  live: new Set<never>(),
  size: 0,
});

/** Events in the messages of a gRPC stream, read as a client reads them. */
const eventsIn = (surface: Surface, messages: readonly Uint8Array[] = []): object[] =>
  messages.map((bytes) => {
    const message = fromBinary(WATCH_RESPONSES[surface], bytes);
    return toJson(WATCH_RESPONSES[surface], message, { useProtoFieldName: true }) as object;
  });

describe('events as messages of a gRPC stream', () => {
  const document = {
    id: 'c1',
    metadata: { name: 'c', finalizers: ['f'], labels: { env: 'dev' } },
    spec: { node_sets: { workers: { size: 3 } } },
    status: { state: 'CLUSTER_STATE_READY', hub: 'h1' },
  };

  it('hold id, type and the object of their surface', () => {
    const shown = (surface: Surface): object[] =>
      eventsIn(surface, chunkFor(groupOf(surface, 'grpc'), [changeOf('7', document)])?.chunks);
    const event = { id: '7.0', type: 'EVENT_TYPE_OBJECT_UPDATED' };
    expect(shown('private')).to.deep.equal([{ event: { ...event, cluster: document } }]);
    const { finalizers: _finalizers, ...metadata } = document.metadata;
    const { hub: _hub, ...status } = document.status;
    expect(shown('public')).to.deep.equal([
      { event: { ...event, cluster: { ...document, metadata, status } } },
    ]);
  });

  it('are made once for all groups that see the same', () => {
    const change = changeOf('7', document);
    const [one, other] = [groupOf('public', 'grpc'), groupOf('public', 'grpc')].map((group) =>
      chunkFor(group, [change]),
    );
    expect(one?.chunks[0]).to.be.instanceOf(Uint8Array).and.to.equal(other?.chunks[0]);
  });

  it('property: tell the same as lines of JSON do, in the same order, whoever else is concerned', () => {
    const object = fc.record({
      tenant: fc.constantFrom('t1', 't2'),
      size: fc.nat(3),
      labels: fc.dictionary(fc.string({ minLength: 1, unit: 'grapheme' }), fc.string({ unit: 'grapheme' })),
      url: fc.string({ minLength: 1, maxLength: 2_000, unit: 'grapheme' }),
    });
    check(
      fc.property(
        fc.array(object, { maxLength: 5 }),
        fc.constantFrom('public', 'private'),
        (all, surface) => {
          const changes = all.map(({ tenant, size, labels, url }, i) =>
            changeOf(
              String(i),
              {
                id: 'c1',
                metadata: { name: 'c', ...(Object.keys(labels).length === 0 ? {} : { labels }) },
                spec: { node_sets: { workers: size === 0 ? {} : { size } } },
                status: { api_url: url },
              },
              tenant,
            ),
          );
          const lines = chunkFor(groupOf(surface, 'ndjson'), changes);
          const frames = chunkFor(groupOf(surface, 'grpc'), changes);
          expect(frames?.last).to.deep.equal(lines?.last);
          const told = Buffer.concat(lines?.chunks ?? [])
            .toString()
            .split('\n')
            .filter((line) => line !== '')
            .map((line) => (JSON.parse(line) as { result: object }).result);
          expect(eventsIn(surface, frames?.chunks)).to.deep.equal(told);
        },
      ),
    );
  });
});

describe('the last line of a watch over HTTP', () => {
  it('says why and where to go on, in the form of its lines', () => {
    const error = stopping('7.0');
    const line = endFrame(error, 'ndjson');
    expect(JSON.parse(line)).to.have.nested.property('error.details[0].metadata.last_id', '7.0');
    expect(endFrame(error, 'sse')).to.equal(`data: ${line}\n`);
  });
});
