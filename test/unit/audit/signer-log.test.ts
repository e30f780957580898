import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { AuditTree } from '../../../src/app/audit/tree.ts';
import { StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { Logger } from '../../../src/app/ports.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { audit, followed, openAuditView, openSigning } from '../../support/audit/open-audit.ts';
import { createHistoryWriter } from '../../support/audit/random-history.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';

const alone: Ownership = { hold: (signal, run) => run({ epoch: 1, signal }) };

/** What is logged, without what only tells of progress. */
const wordsOf = (): { readonly logger: Logger; readonly words: string[] } => {
  const words: string[] = [];
  const at = (level: string) => (_fields: object, text: string) => void words.push(`${level} ${text}`);
  const logger: Logger = {
    debug: () => undefined,
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => logger,
  };
  return { logger, words };
};

/** Who reads the log alone learns of every trouble when it begins and when it is over. */
describe('the log of the signer', () => {
  let store: EventStore;
  let models: ReadModels;
  let tree: AuditTree;
  let write: ReturnType<typeof createHistoryWriter>;
  let time: ManualTime;
  let stop: AbortController;
  let running: Promise<void>;
  beforeEach(async () => {
    store = createMemoryEventStore();
    models = await openAuditView(store);
    tree = audit(models);
    time = manualTime();
    stop = new AbortController();
    running = Promise.resolve();
    write = createHistoryWriter(store, 's');
    await append();
  });
  afterEach(async () => {
    stop.abort();
    await time.pass(0);
    await running;
    await models.close();
    await store.close();
  });

  const append = async (): Promise<void> => {
    const steps = Array.from({ length: 5 }, (_, n) => ({
      stream: `cluster-c${n}`,
      tenant: 'acme',
      subject: 'alice',
      types: ['ClusterLabelled'],
      data: { n },
    }));
    await write(steps);
    await followed(models, store);
  };
  const start = (parts: Partial<Parameters<typeof openSigning>[0]> = {}): string[] => {
    const { logger, words } = wordsOf();
    running = openSigning({ store, tree, ...time, ownership: alone, logger, ...parts }).signer.run(
      stop.signal,
    );
    return words;
  };

  it('says once that a tree is not what was signed, and once that it is again', async () => {
    let [isWrong, isThere] = [false, true];
    const changed: AuditTree = { ...tree, hashAt: (level, index) => tree.hashAt(level, isWrong ? 0 : index) };
    const words = start({ tree: changed, caughtUp: () => isThere });
    await time.pass(20_000);
    expect(words).to.deep.equal([]);
    isWrong = true;
    await time.pass(60_000);
    expect(words).to.have.length(1);
    expect(words[0]).to.match(/^error the tree at size 5, which was signed, has another root now/);
    isWrong = false;
    // It is not said before it was looked at.
    isThere = false;
    await time.pass(20_000);
    expect(words).to.have.length(1);
    isThere = true;
    await time.pass(60_000);
    expect(words.slice(1)).to.deep.equal([
      'info the log and the tree over it are what was recorded and signed again: tree heads are signed again',
    ]);
    isWrong = true;
    await time.pass(60_000);
    expect(words).to.have.length(3);
  });

  it('says once that signing does not succeed, and once that it does again', async () => {
    let isAway = false;
    const away: EventStore = {
      ...store,
      append: (...args) => (isAway ? Promise.reject(new StoreUnavailable('away')) : store.append(...args)),
    };
    const words = start({ store: away });
    await time.pass(20_000);
    isAway = true;
    await append();
    await time.pass(60_000);
    expect(words).to.deep.equal(['warn tree not signed; retrying']);
    isAway = false;
    await time.pass(60_000);
    expect(words.slice(1)).to.deep.equal(['info the tree is signed again']);
  });
});
