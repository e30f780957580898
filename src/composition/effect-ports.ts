import {
  AUTOMATION_EFFECT_DEADLINE_MS,
  AUTOMATION_PORT,
  AUTOMATION_WRITES,
  createAutomationEffects,
  type AutomationEffectSettings,
} from '../app/automation-effects.ts';
import type { Automations } from '../app/automation.ts';
import type { CommandRunner } from '../app/command.ts';
import { drivenAutomations } from '../app/driven-hubs.ts';
import { laneOfHub } from '../app/hub-lanes.ts';
import type { ClusterLooks } from '../app/hub-looks.ts';
import type { HubMarks } from '../app/hub-marks.ts';
import type { HubRegistry } from '../app/hub-registry.ts';
import { createManagementClusterEffects, HUB_WRITES } from '../app/management-cluster-effects.ts';
import type { Clock, Logger, SecretStore, Timers } from '../app/ports.ts';
import type { ProcessPort } from '../app/process-port.ts';
import type { EffectPort } from '../app/process-runner/types.ts';
import { createScheduler } from '../app/scheduler.ts';
import type { PendingEffect } from '../domain/workflow.ts';

/** What effects are carried out by, by the name of the port that workflows give. */
export type EffectPorts = {
  readonly effectPorts: { readonly [port: string]: EffectPort };
  readonly effectDeadlinesMs: { readonly [port: string]: number };
  /** Why an effect must not be tried now: somebody else drives its hub. */
  readonly heldBack: (effect: PendingEffect) => string | undefined;
};

export const createEffectPorts = ({
  hubs,
  looks,
  runner,
  marks,
  processes,
  ports,
}: {
  readonly hubs: HubRegistry;
  readonly looks: ClusterLooks;
  readonly runner: CommandRunner;
  readonly marks: HubMarks;
  readonly processes: ProcessPort;
  readonly ports: {
    readonly secrets: SecretStore;
    readonly clock: Clock;
    readonly timers: Timers;
    readonly logger: Logger;
    readonly automations?: Automations;
    readonly refusesSimulated?: boolean;
    readonly settings?: {
      readonly hubCallDeadlineMs?: number;
      readonly automation?: Partial<AutomationEffectSettings>;
    };
  };
}): EffectPorts => {
  const { secrets, clock, timers, logger, automations, settings = {} } = ports;
  const { hubCallDeadlineMs: callDeadlineMs, automation } = settings;
  const scheduler = createScheduler({
    registry: hubs,
    commandRunner: runner,
    clock,
    logger,
    isBlocked: (hub, order) => processes.laneBlocked(laneOfHub(hub), order),
    callsOf: (hub) => processes.laneCalls(laneOfHub(hub)),
    refusesSimulated: ports.refusesSimulated === true,
  });
  const managementClusters = createManagementClusterEffects({
    registry: hubs,
    secrets,
    clock,
    looks,
    ...(callDeadlineMs === undefined ? {} : { callDeadlineMs }),
  });
  const called =
    automations === undefined
      ? {}
      : {
          [AUTOMATION_PORT]: createAutomationEffects({
            registry: hubs,
            automations: drivenAutomations(automations, marks),
            clock,
            timers,
            ...(automation === undefined ? {} : { settings: automation }),
          }),
        };
  const writes = [...HUB_WRITES, ...AUTOMATION_WRITES];
  return {
    effectPorts: { scheduler, 'management-cluster': managementClusters, ...called },
    effectDeadlinesMs: { [AUTOMATION_PORT]: AUTOMATION_EFFECT_DEADLINE_MS },
    heldBack: ({ operation, args: { hub } }) =>
      writes.includes(operation) && typeof hub === 'string' ? marks.heldBack(hub) : undefined,
  };
};
