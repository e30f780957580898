import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import {
  callerOf,
  PUBLIC,
  startTestService,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { PUBLIC_WATCH } from '../../support/http/watch-client.ts';

type Event = { readonly id: string; readonly secret?: { readonly metadata: { readonly name: string } } };
type Watch = (
  url: string,
  options: {
    readonly token: string;
    readonly from?: string;
    readonly filter?: string;
    readonly onEvent: (event: Event) => void;
    readonly signal?: AbortSignal;
  },
) => Promise<string | undefined>;

/** The function that docs/watch.md shows, as it stands there. */
const shownWatch = (): Watch => {
  const [, shown = ''] = /```js\n([\s\S]*?)```/.exec(readFileSync('docs/watch.md', 'utf8')) ?? [];
  // oxlint-disable-next-line typescript/no-implied-eval
  return new Function(`${shown}\nreturn watch;`)() as Watch;
};

describe('the watch that a page may use', () => {
  const watch = shownWatch();
  let service: TestService;
  let token: string;
  let user: Caller;
  let url: string;

  before(async () => {
    service = await startTestService();
    token = await service.token({ user: 'alice', tenants: ['t1'] });
    user = callerOf(service, token);
    const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await admin('POST', '/api/private/v1/tenants', { metadata: { name: 't1' } });
    url = `${service.url}${PUBLIC_WATCH}`;
  });
  after(() => service.close());

  const write = async (name: string): Promise<string> => {
    const reply = await user('POST', `${PUBLIC}/secrets`, { metadata: { name }, data: { k: 'dg==' } });
    expect(reply.status, reply.text).to.equal(200);
    return reply.headers.get('x-ledger-position') ?? '';
  };

  /** Names of the secrets that it tells of, until there are so many. */
  const namesFrom = async (from: string, many: number): Promise<{ names: string[]; last: string }> => {
    const names: string[] = [];
    let last = from;
    const end = new AbortController();
    const filter = 'has(event.secret)';
    await watch(url, {
      token,
      from,
      filter,
      signal: end.signal,
      onEvent: ({ id, secret }) => {
        names.push(secret?.metadata.name ?? '');
        last = id;
        if (names.length === many) end.abort();
      },
    }).catch((error: unknown) => {
      if (!end.signal.aborted) throw error;
    });
    return { names, last };
  };

  it('tells of everything behind a place once, also when it goes on later', async () => {
    const start = await write('before');
    await write('first');
    await write('second');
    const { names, last } = await namesFrom(start, 2);
    expect(names).to.deep.equal(['first', 'second']);
    await write('third');
    expect((await namesFrom(last, 1)).names).to.deep.equal(['third']);
  });

  it('says why it was refused', async () => {
    const refusal = await watch(url, { token: 'nonsense', onEvent: () => undefined }).catch(
      (error: Error) => error.message,
    );
    expect(refusal).to.be.a('string').that.matches(/token/);
  });
});
