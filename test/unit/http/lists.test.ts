import { expect } from 'chai';
import { kinds } from '../../../src/domain/kinds.ts';
import { ApiError } from '../../../src/http/errors.ts';
import type { Call, ListMessage } from '../../../src/http/osac/call.ts';
import { listHandler } from '../../../src/http/osac/lists.ts';
import type { Surface } from '../../../src/http/osac/messages.ts';
import { ListRefused, type ListQuery, type ResourceReader } from '../../../src/projections/read-models.ts';

const clock = { now: () => '2026-11-21T12:00:00.000Z' } as Parameters<typeof listHandler>[2]['clock'];
const versions = kinds.find(({ kind }) => kind === 'clusterVersion');
if (versions === undefined) throw new Error('there are cluster versions');

type Asking = Partial<ListMessage> & { readonly surface?: Surface; readonly signal?: AbortSignal };

/** Carries out one list call over a reader that only says what it was asked. */
const ask = async (
  { surface = 'public', signal = new AbortController().signal, ...message }: Asking,
  query: ResourceReader['query'] = () => ({ documents: [], total: 0 }),
): Promise<{ readonly asked: ListQuery; readonly body: unknown }> => {
  let asked: ListQuery | undefined;
  const resources = {
    query: (sent: ListQuery) => {
      asked = sent;
      return query(sent);
    },
  } as unknown as ResourceReader;
  const handler = listHandler(versions, surface, { resources, clock }, () => {
    throw new Error('nothing of the past was asked');
  });
  const { body } = await handler({
    surface,
    principal: { visibility: { tenants: ['t1', 'shared'] } },
    message: { offset: 0, limit: 100, ...message },
    signal,
  } as unknown as Call<ListMessage>);
  if (asked === undefined) throw new Error('nothing was asked');
  return { asked, body };
};

const refusal = async (reason: ListRefused['reason']): Promise<ApiError> => {
  try {
    await ask({}, () => Promise.reject(new ListRefused(reason)));
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('answered');
};

describe('the list method', () => {
  it('asks for what the caller sees, now, and hands on that the caller may leave', async () => {
    const leaving = new AbortController();
    const { asked } = await ask({ surface: 'private', offset: 5, limit: 7, signal: leaving.signal });
    expect(asked).to.deep.include({
      kind: 'clusterVersion',
      surface: 'private',
      visibility: { tenants: ['t1', 'shared'] },
      offset: 5,
      limit: 7,
      nowMs: Date.parse('2026-11-21T12:00:00.000Z'),
      signal: leaving.signal,
    });
    expect([asked.filter, asked.order, asked.listedOnly]).to.deep.equal([undefined, undefined, undefined]);
  });

  it('asks the index for all public defaults, and for each by itself once a filter is about another', async () => {
    expect((await ask({})).asked.listedOnly).to.equal(true);
    const other = await ask({ filter: 'this.metadata.name == "x"' });
    expect([other.asked.listedOnly, other.asked.filter?.op]).to.deep.equal([true, '==']);
    const state = await ask({ filter: 'this.spec.state == CLUSTER_VERSION_STATE_OBSOLETE' });
    expect([state.asked.listedOnly, state.asked.filter?.op]).to.deep.equal([undefined, 'and']);
    const both = await ask({ filter: 'this.spec.state == 3 && this.spec.enabled == false' });
    expect(both.asked.filter).to.deep.equal(
      (await ask({ surface: 'private', filter: 'this.spec.state == 3 && this.spec.enabled == false' })).asked
        .filter,
    );
  });

  it('renders size, total and items, and leaves out what is zero', async () => {
    expect((await ask({})).body).to.equal('{}');
    expect((await ask({ limit: 0 }, () => ({ documents: [], total: 3 }))).body).to.equal('{"total":3}');
    const page = await ask({}, async () => ({ documents: ['{"id":"a"}', '{"id":"b"}'], total: 3 }));
    expect(page.body).to.equal('{"size":2,"total":3,"items":[{"id":"a"},{"id":"b"}]}');
  });

  it('says when to try again, and what to do about it', async () => {
    const busy = await refusal('busy');
    expect([busy.status, busy.reason, busy.options.retryAfterSeconds]).to.deep.equal([503, 'LISTS_BUSY', 1]);
    const tooLong = await refusal('too-long');
    expect([tooLong.status, tooLong.reason]).to.deep.equal([503, 'LIST_TOO_LONG']);
    expect(tooLong.message).to.contain('narrow it');
    expect((await refusal('cancelled')).status).to.equal(499);
  });
});
