import type { EffectOutcome, PendingEffect } from '../../../../src/domain/workflow.ts';
import type { PlaceResult } from '../../../../src/domain/hubs/placement.ts';
import { hubFacts } from '../../../../src/domain/hubs/hub-facts.ts';
import { createSiteModel } from '../../../support/simulation/site-model.ts';
import { createOrderRun, done, placedOn } from './order-run.ts';
import { NOWHERE } from './order-steps.ts';
import { healthy, HUB, ordered, time } from './samples.ts';

const { steps } = hubFacts({ id: HUB, document: {} });

/** Every step that can be the ledger's is. */
export const placedOnSite = (): PlaceResult =>
  ({ ...placedOn(), steps, site: { zone: 'east', baseDomain: 'east.sim.example' } }) as PlaceResult;

const AUTO = { ip: 'ip-', attachment: 'attachment-' };
const idsOf = (endpoint: string) => ({
  ip: `${AUTO.ip}${endpoint}`,
  attachment: `${AUTO.attachment}${endpoint}`,
});
export const withAddresses = {
  externalIps: {
    pool: { id: 'pool-1', name: 'public' },
    hub: HUB,
    ids: { API: idsOf('api'), INGRESS: idsOf('ingress') },
  },
};

/** What becomes of an effect instead of its answer. */
export type Fate = 'answer' | EffectOutcome | 'lost' | 'unsent';

/** An order on a hub with a site, and the far side of all its steps. */
export const createSiteOrder = (more: object = {}) => {
  const base = createOrderRun();
  const model = createSiteModel();
  base.command({ type: 'OrderCluster', ...ordered, ...more });
  const shown = () => (model.hasOrder() ? healthy() : NOWHERE);
  const answerOf = (effect: PendingEffect): EffectOutcome => {
    const answer = model.perform(effect);
    if (effect.port === 'scheduler' && effect.operation === 'place') return done(placedOnSite());
    return done(answer ?? shown());
  };
  const now = (): string => base.at();
  const run = {
    ...base,
    model,
    answerOf,
    /** Effects that may be started now, timed reads apart. */
    ready: (): readonly PendingEffect[] =>
      base
        .pending()
        .effects.filter(({ everyMs, notBefore = '' }) => everyMs === undefined && notBefore <= now()),
    /** Starts it; `lost`: it is carried out and nobody hears of it; `unsent`: neither. */
    carry: (effect: PendingEffect, fate: Fate = 'answer'): void => {
      base.begin(effect);
      if (fate === 'unsent') return;
      if (fate === 'lost') {
        model.perform(effect);
        return;
      }
      base.result(effect.effectId, fate === 'answer' ? answerOf(effect) : fate);
      base.commands();
    },
    look: (): void => {
      base.observe(shown());
      base.commands();
    },
    /** Until the next time that something is due at. */
    wait: (): boolean => {
      const { effects, timers } = base.pending();
      const due = [
        ...effects.flatMap(({ everyMs, notBefore }) =>
          everyMs === undefined && notBefore !== undefined ? [notBefore] : [],
        ),
        ...timers.map(({ dueAt }) => dueAt),
      ]
        .filter((at) => at > now())
        .toSorted()[0];
      if (due !== undefined) base.after(Date.parse(due) - Date.parse(now()));
      for (const { timerId, dueAt } of base.pending().timers) if (dueAt <= now()) base.fire(timerId);
      base.commands();
      return due !== undefined;
    },
    /** Goes on, with answers, until `until` holds or nothing happens any more. */
    play: (
      until: () => boolean = () => false,
      fateOf: (effect: PendingEffect) => Fate = () => 'answer',
    ): void => {
      for (let turn = 0; turn < 600 && !until(); turn += 1) {
        base.commands();
        const [next] = run.ready();
        if (next !== undefined) {
          run.carry(next, fateOf(next));
          continue;
        }
        const before = base.subjectLog().length + base.runLog().length;
        run.look();
        if (base.subjectLog().length + base.runLog().length > before) continue;
        if (!run.wait() && run.ready().length === 0) return;
      }
    },
    delete: () => base.command({ type: 'DeleteCluster', at: time(50) }),
  };
  return run;
};
export type SiteOrder = ReturnType<typeof createSiteOrder>;
