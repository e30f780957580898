import { createAddressEffects } from '../app/hubs/address-effects.ts';
import {
  AUTOMATION_EFFECT_DEADLINE_MS,
  AUTOMATION_PORT,
  AUTOMATION_WRITES,
  createAutomationEffects,
  type AutomationEffectSettings,
} from '../app/automation/automation-effects.ts';
import type { Automations } from '../app/automation/automation.ts';
import type { ResourceCommands } from '../app/commands/resource-commands.ts';
import type { CommandRunner } from '../app/commands/command.ts';
import { drivenAutomations } from '../app/hubs/driven-hubs.ts';
import type { ObjectLooks } from '../app/hubs/hub-looks.ts';
import type { HubMarks } from '../app/hubs/hub-marks.ts';
import { createTakingEffects } from '../app/hubs/taking-effects.ts';
import { createAgentEffects } from '../app/agents/agent-effects.ts';
import { createMadeObjectEffects } from '../app/hubs/made-object-effects.ts';
import type { HubRegistry } from '../app/hubs/hub-registry.ts';
import { createManagementClusterEffects, HUB_WRITES } from '../app/hubs/management-cluster-effects.ts';
import { createPoolEffects } from '../app/pools/pool-effects.ts';
import type { PoolRegistry } from '../app/pools/pool-registry.ts';
import type { Runtime, SecretStore } from '../app/ports.ts';
import type { ProcessPort } from '../app/process-runner/process-port.ts';
import { createSiteEffects, SITE_PORT, SITE_WRITES } from '../app/site/site-effects.ts';
import type { Sites } from '../app/site/ports.ts';
import { offeredAt } from '../app/site/offered-site.ts';
import type { SiteRegistry } from '../app/site/site-registry.ts';
import { createParentEffects } from '../app/hubs/parent-effects.ts';
import { createScheduler } from '../app/hubs/scheduler.ts';
import { createTenantEffects, createTenantSpaces } from '../app/hubs/tenant-spaces.ts';
import { laneOf } from '../domain/hubs/hub-object.ts';
import type { PendingEffect } from '../domain/workflow.ts';

/** What effects need of what is outside the system. */
export type EffectSurroundings = {
  readonly secrets: SecretStore;
  /** Adapters of the hubs' automation; absent: only hubs are worked on that run their own. */
  readonly automations?: Automations;
  /** Adapters of the sites; absent: nothing around the hubs is reached. */
  readonly sites?: Sites;
  /** Simulated hubs take no orders here. */
  readonly refusesSimulated?: boolean;
  readonly settings?: {
    readonly hubCallDeadlineMs?: number;
    readonly automation?: Partial<AutomationEffectSettings>;
  };
} & Pick<Runtime, 'clock' | 'timers' | 'logger'>;

/** What effects are carried out by, by the name of the port that workflows give. */
export const createEffectPorts = (
  {
    hubs,
    sites,
    pools,
    looks,
    runner,
    commands,
    marks,
    processes,
  }: {
    readonly hubs: HubRegistry;
    readonly sites: SiteRegistry;
    readonly pools: PoolRegistry;
    readonly looks: ObjectLooks;
    readonly runner: CommandRunner;
    readonly commands: ResourceCommands;
    readonly marks: HubMarks;
    readonly processes: ProcessPort;
  },
  ports: EffectSurroundings,
) => {
  const { secrets, clock, timers, logger, automations, settings = {} } = ports;
  const { hubCallDeadlineMs: callDeadlineMs, automation } = settings;
  const scheduler = createScheduler({
    registry: hubs,
    commandRunner: runner,
    clock,
    logger,
    isBlocked: (hub, order) => processes.laneBlocked(laneOf(hub), order),
    callsOf: (hub) => processes.laneCalls(laneOf(hub)),
    refusesSimulated: ports.refusesSimulated === true,
    siteOf: async ({ zone }) => {
      await Promise.all([sites.ready(), pools.ready()]);
      return offeredAt(zone, sites, pools);
    },
  });
  const tenants = createTenantSpaces({ registry: hubs, commandRunner: runner, clock });
  const managementClusters = createManagementClusterEffects({
    registry: hubs,
    tenants,
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
  const writes = [...HUB_WRITES, ...AUTOMATION_WRITES, ...SITE_WRITES];
  return {
    effectPorts: {
      agents: createAgentEffects({
        commandRunner: runner,
        siteOf: sites.siteOfHub,
        clock,
      }),
      addresses: createAddressEffects({ commandRunner: runner, clock }),
      pools: createPoolEffects({ registry: pools, commandRunner: runner, clock }),
      parents: createParentEffects({ commandRunner: runner, clock }),
      scheduler,
      'made-objects': createMadeObjectEffects({ commandRunner: runner, commands, clock }),
      [SITE_PORT]: createSiteEffects({ sites }),
      takings: createTakingEffects({ commandRunner: runner, clock }),
      'management-cluster': managementClusters,
      tenants: createTenantEffects(runner),
      ...called,
    },
    effectDeadlinesMs: { [AUTOMATION_PORT]: AUTOMATION_EFFECT_DEADLINE_MS },
    /** Why an effect must not be tried now: somebody else drives its hub. */
    heldBack: ({ operation, args: { hub } }: PendingEffect): string | undefined =>
      writes.includes(operation) && typeof hub === 'string' ? marks.heldBack(hub) : undefined,
  };
};
