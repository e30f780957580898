import { expect } from 'chai';
import fc from 'fast-check';
import { MARK_DURATION_MS, MARK_RENEW_MS } from '../../../src/domain/hubs/mark.ts';
import { HUB, marksStage, type Log, type Service } from '../../support/hubs/marks-stage.ts';
import { manualTime } from '../../support/manual-time.ts';
import { checkAsync } from '../../support/property.ts';

const EPOCH_MS = 600_000;

const stage = () => {
  const time = manualTime();
  return { time, ...marksStage(time) };
};

const codesOf = (service: Service): readonly (string | undefined)[] | undefined =>
  service.told()?.map(({ subject }) => subject);

describe('marks on hubs', () => {
  it('let the first service drive at once, and a killed one again at once', async () => {
    const { start, newLog } = stage();
    const log = newLog();
    const first = await start(log);
    expect(await first.drives()).to.equal(true);
    first.kill();
    const again = await start(log);
    expect(await again.drives()).to.equal(true);
  });

  it('are written without an order, although the first look goes on while the service becomes the owner', async () => {
    const { start, newLog, time, mark } = stage();
    const { readMark } = mark;
    mark.readMark = async (by) => {
      await new Promise<void>((resolve) => time.timers.after(200, resolve));
      return readMark(by);
    };
    await start(newLog());
    await time.pass(1_000);
    expect(mark.stored()?.mark).to.include({ epoch: 1 });
  });

  it('are renewed while the service lives, and tell the epoch of its log', async () => {
    const { start, newLog, time, mark } = stage();
    const service = await start(newLog());
    await service.drives();
    const before = mark.stored();
    await time.pass(MARK_RENEW_MS);
    expect(mark.stored()?.version).not.to.equal(before?.version);
    expect(mark.stored()?.mark).to.include({ epoch: 1, released: false, name: 'ledger' });
    await time.pass(EPOCH_MS);
    expect(mark.stored()?.mark.epoch).to.equal(2);
  });

  it('keep a copy of the log that is started beside the live service from driving, and say so', async () => {
    const { start, newLog, copy, time } = stage();
    const live = await start(newLog());
    await live.drives();
    const restored = await start(await copy(live.log));
    for (let looks = 0; looks < 20; looks += 1) {
      expect(await restored.drives()).to.equal(false);
      await time.pass(3_000);
    }
    expect(codesOf(restored)).to.deep.equal(['copy']);
    expect(restored.marks.heldBack(HUB)).to.match(/^hub hub-1 is left alone: deployment 'ledger'/);
    expect(await live.drives()).to.equal(true);
    expect(live.told()).to.equal(undefined);
  });

  it('make a backup fall behind at once, whether or not the live service runs', async () => {
    const { start, newLog, copy, time } = stage();
    const live = await start(newLog());
    await live.drives();
    const backup = await copy(live.log);
    await live.marks.beginEpoch();
    live.kill();
    const restored = await start(backup);
    await time.pass(4 * MARK_DURATION_MS);
    expect(await restored.drives()).to.equal(false);
    expect(codesOf(restored)).to.deep.equal(['behind']);
  });

  it('go over to a log that was put under a new id; the old service stops within one renewal and says so', async () => {
    const { start, newLog, copy, rebind, time } = stage();
    const live = await start(newLog());
    await live.drives();
    const backup = await copy(live.log);
    await live.marks.beginEpoch();
    await rebind(backup);
    const restored = await start(backup);
    expect(await restored.drives()).to.equal(true);
    await time.pass(MARK_RENEW_MS);
    expect(await live.drives()).to.equal(false);
    expect(codesOf(live)).to.deep.equal(['replaced']);
    // Also when the new one is away for a while.
    await restored.stop();
    await time.pass(4 * MARK_DURATION_MS);
    expect(await live.drives()).to.equal(false);
    const back = await start(backup);
    expect(await back.drives()).to.equal(true);
  });

  it('are looked at before anything else by a service that was suspended for longer than a renewal', async () => {
    const { start, newLog, copy, rebind, time } = stage();
    const live = await start(newLog());
    await live.drives();
    live.suspend();
    const backup = await copy(live.log);
    await rebind(backup);
    const restored = await start(backup);
    expect(await restored.drives()).to.equal(true);
    await time.pass(MARK_RENEW_MS + 1);
    live.resume();
    expect(await live.drives()).to.equal(false);
    expect(codesOf(live)).to.deep.equal(['replaced']);
  });

  it('keep a replaced service away also when another restored one took over from the one that replaced it', async () => {
    const { start, newLog, copy, rebind, time } = stage();
    const first = newLog();
    const live = await start(first);
    await live.drives();
    const [one, other] = [await copy(first), await copy(first)];
    await rebind(one);
    await rebind(other);
    const restored = await start(one);
    expect(await restored.drives()).to.equal(true);
    const again = await copy(one);
    await rebind(again);
    const replacing = await start(again);
    expect(await replacing.drives()).to.equal(true);
    const sibling = await start(other);
    replacing.kill();
    await time.pass(2 * MARK_DURATION_MS);
    sibling.kill();
    await time.pass(4 * MARK_DURATION_MS);
    expect(await restored.drives()).to.equal(false);
  });

  it('are left to nobody after a person removed them: the next look takes the hub and the condition ends', async () => {
    const { start, newLog, copy, time, mark } = stage();
    const live = await start(newLog());
    await live.drives();
    const backup = await copy(live.log);
    await live.marks.beginEpoch();
    live.kill();
    const restored = await start(backup);
    await time.pass(MARK_RENEW_MS);
    expect(codesOf(restored)).to.deep.equal(['behind']);
    mark.remove();
    await time.pass(MARK_RENEW_MS);
    expect(await restored.drives()).to.equal(true);
    expect(restored.told()).to.deep.equal([]);
  });

  it('pass at once to another instance on the same log when the first one stops in order', async () => {
    const { start, newLog, time } = stage();
    const log = newLog();
    const first = await start(log, 'one');
    await first.drives();
    const second = await start(log, 'two');
    await time.pass(MARK_RENEW_MS);
    expect(await second.drives()).to.equal(false);
    await first.stop();
    // A watcher looks at the lease each second.
    await time.pass(1_000);
    expect(await second.drives()).to.equal(true);
  });

  it('pass to another instance on the same log as soon as the lease of a killed one is over', async () => {
    const { start, newLog, time } = stage();
    const log = newLog();
    const first = await start(log, 'one');
    await first.drives();
    const second = await start(log, 'two');
    await time.pass(MARK_RENEW_MS);
    first.kill();
    await time.pass(20_000);
    expect(await second.drives()).to.equal(true);
    expect(second.told()).to.equal(undefined);
  });
});

const DEEDS = ['start', 'restore', 'stop', 'kill', 'copy', 'backup', 'rebind', 'suspend', 'resume'] as const;
type Action =
  | { readonly do: (typeof DEEDS)[number]; readonly at: number }
  | { readonly do: 'pass'; readonly ms: number };

const actions: fc.Arbitrary<readonly Action[]> = fc.array<Action>(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constantFrom(...DEEDS), at: fc.nat(9) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('start', 'restore', 'kill'), at: fc.nat(9) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('pass'),
        ms: fc.oneof(fc.integer({ min: 1, max: 6_000 }), fc.integer({ min: 14_000, max: 40_000 })),
      }),
    },
  ),
  { minLength: 5, maxLength: 40, size: 'max' },
);

describe('services on copies of one log', function () {
  this.timeout(60_000);
  it('never drive one hub together beyond one renewal, and never again once they were replaced', () =>
    checkAsync(
      fc.asyncProperty(actions, async (acts: readonly Action[]) => {
        const { time, start, newLog, copy, rebind } = stage();
        const logs: Log[] = [newLog()];
        const services: Service[] = [await start(logs[0] as Log)];
        /** When a service first drove that was restored from a log with this id. */
        const replacedAt = new Map<string, number>();
        const probe = async (): Promise<void> => {
          const now = time.clock.monotonicMs();
          const driving: Service[] = [];
          for (const service of services) if (await service.drives()) driving.push(service);
          for (const { deployment } of driving)
            for (const id of deployment.formerIds) if (!replacedAt.has(id)) replacedAt.set(id, now);
          const current = driving.filter(({ deployment: { deploymentId } }) => {
            const since = replacedAt.get(deploymentId);
            return since === undefined || now - since > MARK_RENEW_MS;
          });
          expect(current.length, `driving at ${now}`).to.be.at.most(1);
          for (const { deployment } of current)
            expect(replacedAt.has(deployment.deploymentId), `replaced and driving at ${now}`).to.equal(false);
        };
        const running = (log: Log): readonly Service[] =>
          services.filter((service) => service.isAlive() && service.log === log);
        for (const act of acts) {
          if (act.do === 'pass') {
            for (let left = act.ms; left > 0; left -= 2_500) {
              await time.pass(Math.min(left, 2_500));
              await probe();
            }
            continue;
          }
          const log = logs[act.at % logs.length] as Log;
          const service = services[act.at % services.length] as Service;
          if (act.do === 'start' && running(log).length === 0) services.push(await start(log));
          else if (act.do === 'kill') service.kill();
          else if (act.do === 'stop' && service.isAlive()) {
            service.resume();
            await service.stop();
          } else if (act.do === 'copy') logs.push(await copy(log));
          else if (act.do === 'backup' && service.isAlive()) {
            logs.push(await copy(service.log));
            service.resume();
            await service.marks.beginEpoch();
          } else if (act.do === 'restore') {
            const restored = await copy(log);
            logs.push(restored);
            await rebind(restored);
            services.push(await start(restored));
          } else if (act.do === 'rebind' && running(log).length === 0) await rebind(log);
          else if (act.do === 'suspend') service.suspend();
          else if (act.do === 'resume') service.resume();
          await probe();
        }
      }),
      { numRuns: 40 },
    ));
});
