import { expect } from 'chai';
import { createAutomations } from '../../../src/adapters/automation/automations.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import {
  createAutomationEffects,
  type AutomationEffectSettings,
  type TriggerArgs,
} from '../../../src/app/automation/automation-effects.ts';
import type { HubRegistry, RegisteredHub } from '../../../src/app/hubs/hub-registry.ts';
import type { EffectCall, EffectPort } from '../../../src/app/process-runner/types.ts';
import { hubFacts } from '../../../src/domain/hubs/hub-facts.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { EffectOutcome } from '../../../src/domain/workflow.ts';
import { effectCall } from '../../support/hubs/hub-fixture.ts';
import { HUB, PLACE } from './automated-hub.ts';
import { CANARIES, HMAC_SECRET, secretStore, TOKEN } from './contract.ts';

/** Milliseconds in which requests settle here. */
export const SETTLES = 120;
export const QUICK: AutomationEffectSettings = {
  requestDeadlineMs: 80,
  queuedGraceMs: SETTLES - 80,
  launchGraceMs: SETTLES - 80,
  lookAgainMs: 10,
  callDeadlineMs: 2_000,
};

/** What specs of the effects of an automation start from: to be called in their `describe`. */
export const effectsStage = () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  const portTo = (endpoints: JsonObject, adapter: RegisteredHub['adapter'], mode = 'eda'): EffectPort => {
    const refOf = (id: string) => ({ id, version: 'v1', kind: 'secret-data', fingerprint: 'f' }) as const;
    const registered = {
      facts: hubFacts({ id: HUB, document: { spec: { namespace: 'orders', endpoints, mode } } }),
      adapter,
      automation: { token: refOf(TOKEN), hmacSecret: refOf(HMAC_SECRET) },
      tenant: 'shared',
    } as unknown as RegisteredHub;
    const registry: Pick<HubRegistry, 'ready' | 'get'> = {
      ready: async () => undefined,
      get: (id) => (id === HUB ? registered : undefined),
    };
    return createAutomationEffects({
      registry,
      automations: createAutomations({ secrets: secretStore }),
      clock: systemClock(),
      timers: systemTimers(),
      settings: QUICK,
    });
  };
  const triggerArgs = (mode: 'eda' | 'aap', more: Partial<TriggerArgs> = {}): JsonObject =>
    ({ hub: HUB, mode, purpose: 'provision', place: PLACE, ...more }) as unknown as JsonObject;
  const now = (): string => new Date().toISOString();
  /** The attempt after one that was started just now and of which nothing is known. */
  const secondAttempt = (more: Partial<EffectCall> = {}): EffectCall =>
    effectCall({ attempt: 2, mode: 'observe', firstStartedAt: now(), ...more });
  const withoutSecrets = (outcome: EffectOutcome): EffectOutcome => {
    for (const secret of CANARIES) expect(JSON.stringify(outcome)).not.to.include(secret);
    return outcome;
  };
  const timed = async (work: Promise<EffectOutcome>): Promise<readonly [EffectOutcome, number]> => {
    const begun = performance.now();
    const outcome = withoutSecrets(await work);
    return [outcome, performance.now() - begun];
  };
  return { closing, portTo, triggerArgs, now, secondAttempt, withoutSecrets, timed };
};
