import { expect } from 'chai';
import fc from 'fast-check';
import type { PendingEffect } from '../../../../src/domain/workflow.ts';
import { cases, check } from '../../../support/property.ts';
import { randomOf, type Random } from '../../../support/simulation/random.ts';
import { failed, refused, unknown } from './order-run.ts';
import { createSiteOrder, withAddresses, type SiteOrder } from './site-order.ts';
import { time } from './samples.ts';

const KEEP = { annotations: { 'fulfillment-ledger/keep-on-failure': 'true' } };
const WAITING = [
  'agents',
  'vlan',
  'addresses',
  'dns',
  'certificates',
  'nodes',
  'remove ports',
  'remove networks',
  'remove bindings',
  'remove nats',
  'remove records',
];

/** What people do to an order, at any moment. */
const decide = (run: SiteOrder, random: Random): void => {
  const at = time(40);
  random.pick([
    () => run.command({ type: 'CancelOrder', at }),
    () => run.command({ type: 'AbortOrder', at, reason: 'by chance' }),
    () => run.delete(),
    () => run.command({ type: 'RetryCluster', at }),
    () => run.decided({ type: 'SkipStep', step: 'agent-addresses', at, by: 'op', reason: 'by chance' }),
  ])();
};

/** Something becomes of an effect; `late`: answers that are still on their way. */
const carry = (run: SiteOrder, effect: PendingEffect, random: Random, late: (() => void)[]): void => {
  const fate = random.next();
  if (fate < 0.05) run.carry(effect, 'lost');
  else if (fate < 0.08) run.carry(effect, 'unsent');
  else if (fate < 0.12) run.carry(effect, failed());
  else if (fate < 0.15) {
    run.carry(effect, unknown);
    if (random.chance(0.5)) run.model.perform(effect);
  } else if (fate < 0.16) run.carry(effect, refused);
  else if (fate < 0.2) {
    run.begin(effect);
    const answer = run.answerOf(effect);
    late.push(() => void run.result(effect.effectId, answer));
  } else run.carry(effect);
};

/** So many turns in a world in which everything may go wrong; then a calm one, in which the order ends. */
const live = (seed: number): SiteOrder => {
  const random = randomOf(seed);
  const run = createSiteOrder({
    ...(random.chance(0.5) ? withAddresses : {}),
    ...(random.chance(0.2) ? KEEP : {}),
  });
  for (const what of WAITING) run.model.patience.set(what, random.int(0, 2));
  const late: (() => void)[] = [];
  const turns = random.int(5, 120);
  for (let turn = 0; turn < turns && !run.isClosed(); turn += 1) {
    if (random.chance(0.02)) decide(run, random);
    if (random.chance(0.05)) run.restart();
    if (random.chance(0.3)) late.splice(random.int(0, late.length), 1).forEach((deliver) => deliver());
    const ready = run.ready();
    if (ready.length > 0) carry(run, random.pick(ready), random, late);
    else if (random.chance(0.5)) run.look();
    else run.wait();
    if (random.chance(0.9)) run.commands();
  }
  late.splice(0).forEach((deliver) => deliver());
  run.delete();
  run.play(run.isClosed);
  return run;
};

describe('an order whose steps the ledger does', () => {
  it('leaves nothing behind and gives back in order, whatever goes wrong', function () {
    this.timeout(600_000);
    check(
      fc.property(fc.integer({ min: 1, max: 2 ** 30 }), (seed) => {
        const run = live(seed);
        expect(run.model.wrongs.join('; '), 'order').to.equal('');
        expect(run.isClosed(), `closed: ${JSON.stringify(run.pending())}`).to.equal(true);
        expect(run.model.held().join(', '), 'left behind').to.equal('');
        expect(run.isFolded(), 'folded').to.equal(true);
      }),
      { numRuns: cases(1_000) },
    );
  });
});
