import { expect } from 'chai';
import { SiteError, type OwnerMark, type Site } from '../../../src/app/site/ports.ts';
import type { CallOptions } from '../../../src/app/hubs/management-cluster.ts';

/** A site to test its adapters on. What is taken works there by itself within `patienceMs`. */
export type SiteUnderTest = {
  readonly site: Site;
  /** Another instance of the adapters on the same site, as a second process would have it. */
  readonly another: () => Promise<Site>;
  readonly patienceMs: number;
  /** Makes an operation misbehave from now on; `healthy` ends it. */
  readonly misbehave: {
    readonly loseNextAnswer: (operation: string) => Promise<void>;
    readonly neverAnswer: () => Promise<void>;
    readonly refuseConnections: () => Promise<void>;
    readonly healthy: () => Promise<void>;
  };
  readonly close: () => Promise<void>;
};
export type OpenSite = () => Promise<SiteUnderTest>;

let calls = 0;
export const callBy = (more: Partial<CallOptions> = {}): CallOptions => ({
  effectId: `contract-${process.pid}-${(calls += 1)}`,
  deadlineMs: 10_000,
  signal: new AbortController().signal,
  ...more,
});

export const owner = (order: string, generation = 1): OwnerMark => ({ order, generation });

const POLL_MS = 10;

/** Polls until the condition holds; fails after `ms` milliseconds with the last value seen. */
export const untilSeen = async <T>(
  read: () => Promise<T>,
  holds: (value: T) => boolean,
  ms: number,
): Promise<T> => {
  const end = performance.now() + ms;
  for (;;) {
    const value = await read();
    if (holds(value)) return value;
    if (performance.now() > end) throw new Error(`still not so: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

/** The SiteError that a call fails with. */
export const failure = async (work: Promise<unknown>): Promise<SiteError> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof SiteError) return error;
    throw error;
  }
  throw new Error('the call succeeded');
};

/** What can be made and taken away with a mark, so that every port is held to the same rules. */
export type Marking = {
  /** For the title: `a VLAN`. */
  readonly called: string;
  /** What has to be there first, and is the first order's. */
  readonly before?: (site: Site) => Promise<void>;
  readonly make: (site: Site, mark: OwnerMark, by: CallOptions) => Promise<void>;
  readonly takeAway: (site: Site, mark: OwnerMark, by: CallOptions) => Promise<void>;
  /** Marks of what is shown of it. */
  readonly marks: (site: Site, order?: string) => Promise<readonly OwnerMark[]>;
  /** The operation of `make`, as faults are named. */
  readonly operation: string;
  /** Another order cannot even ask for it before it has something of its own. */
  readonly ofOrder?: true;
};

/** Rules that hold for everything that carries a mark. */
export const describeMarking = (name: string, open: OpenSite, what: Marking): void => {
  describe(`${name}: ${what.called}`, () => {
    let under: SiteUnderTest;
    let site: Site;
    beforeEach(async () => {
      under = await open();
      site = under.site;
      await what.before?.(site);
    });
    afterEach(() => under.close());

    const mine = owner('order-a');
    const isThere = (at: Site = site) =>
      untilSeen(
        () => what.marks(at, 'order-a'),
        (marks) => marks.length === 1,
        under.patienceMs,
      );
    const isGone = () =>
      untilSeen(
        () => what.marks(site),
        (marks) => marks.length === 0,
        under.patienceMs,
      );

    it('is made once, however often it is asked for, and shows its mark', async () => {
      await what.make(site, mine, callBy());
      await what.make(site, mine, callBy());
      expect(await isThere()).to.deep.equal([mine]);
      expect(await what.marks(site, 'order-b')).to.deep.equal([]);
      expect(await what.marks(site)).to.deep.equal([mine]);
    });

    it('is the same for another instance', async () => {
      const other = await under.another();
      await what.make(site, mine, callBy());
      expect(await isThere(other)).to.deep.equal([mine]);
      await what.takeAway(other, mine, callBy());
      await isGone();
    });

    it('is refused to another order as a conflict, and stays as it is', async () => {
      await what.make(site, mine, callBy());
      await isThere();
      const error = await failure(what.make(site, owner('order-b'), callBy()));
      expect(error.kind).to.equal('conflict');
      expect(error.message).to.include('order-a');
      await what.takeAway(site, owner('order-b'), callBy());
      expect(await what.marks(site)).to.deep.equal([mine]);
    });

    it('goes when it is taken away, as often as that is asked, and can be made again', async () => {
      await what.takeAway(site, mine, callBy());
      await what.make(site, mine, callBy());
      await isThere();
      await what.takeAway(site, mine, callBy());
      await what.takeAway(site, mine, callBy());
      await isGone();
      await what.takeAway(site, mine, callBy());
      await what.make(site, owner('order-a', 2), callBy());
      expect(await isThere()).to.deep.equal([owner('order-a', 2)]);
    });

    it('is found after its answer was lost', async () => {
      await under.misbehave.loseNextAnswer(what.operation);
      expect((await failure(what.make(site, mine, callBy()))).kind).to.equal('unknown-outcome');
      expect(await isThere()).to.deep.equal([mine]);
      await what.make(site, mine, callBy());
      expect(await what.marks(site)).to.deep.equal([mine]);
    });

    it('is in doubt when no answer comes in time, and a look then fails', async () => {
      await under.misbehave.neverAnswer();
      expect((await failure(what.make(site, mine, callBy({ deadlineMs: 40 })))).kind).to.equal(
        'unknown-outcome',
      );
      await under.misbehave.healthy();
      await what.make(site, mine, callBy());
      await isThere();
    });

    it('is in doubt when the caller gives up, and not sent when it had before', async () => {
      await under.misbehave.neverAnswer();
      const leaving = new AbortController();
      const error = failure(what.make(site, mine, callBy({ signal: leaving.signal })));
      setTimeout(() => leaving.abort(), 20);
      expect((await error).kind).to.equal('unknown-outcome');
      const before = await failure(what.make(site, mine, callBy({ signal: AbortSignal.abort() })));
      expect(before.kind).to.equal('unavailable');
      await under.misbehave.healthy();
      expect(await what.marks(site)).to.deep.equal([]);
    });

    it('is certainly not made where nobody answers', async () => {
      await under.misbehave.refuseConnections();
      expect((await failure(what.make(site, mine, callBy()))).kind).to.equal('unavailable');
      await under.misbehave.healthy();
      expect(await what.marks(site)).to.deep.equal([]);
    });
  });
};
