import type { HubProblemFact } from '../../domain/hubs/health-events.ts';
import { findingsOf, type HostCounts, type HubFindings } from '../../domain/hubs/health.ts';
import type { HubMode } from '../../domain/hubs/hub-facts.ts';
import { defined, own } from '../../domain/json-tools.ts';
import { ownedObjects } from '../../domain/hub-objects.ts';
import { AutomationError, type Automation, type AutomationConnection } from '../automation/automation.ts';
import type { RegisteredHub } from './hub-registry.ts';
import type { CallOptions, HubProblem, HubReport, ManagementCluster } from './management-cluster.ts';
import type { Logger, Timers } from '../ports.ts';

/** What one look at a hub comes to: the adapter's report, with what its automation says. */
export type HubCheck = Omit<HubReport, 'problems'> & {
  readonly problems: readonly HubProblemFact[];
  readonly hosts?: HostCounts;
  /** The same by what it says something about; what was not reached is absent. */
  readonly findings: HubFindings;
};

/** Milliseconds that one call of a look may take, and all of them together. */
const PATIENCE = { callMs: 10_000, lookMs: 30_000 };
/**
 * Of a look for which a person waits: nothing looks again by itself, and a loaded machine of ours, which may have to
 * start the thread of the hub first, must not make a healthy hub unreachable.
 */
const PATIENCE_AWAITED = { callMs: 30_000, lookMs: 50_000 };

export type Look = {
  readonly hub: string;
  readonly cluster: ManagementCluster;
  /** Tries an order as well: CheckOptions. */
  readonly thorough: boolean;
  /** Somebody waits for the answer. */
  readonly awaited: boolean;
  /** Absent: the hub's operator runs its automation itself. */
  readonly automation?: Automation;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

/**
 * Really connects to a hub and its automation. Ends within 30 s, or 50 s where it is awaited, whatever they do; never
 * throws for what they do. Once `signal` is aborted the answer means nothing.
 */
export const lookAtHub = async (look: Look): Promise<HubCheck> => {
  const { hub, timers, logger, signal } = look;
  const { callMs, lookMs } = look.awaited ? PATIENCE_AWAITED : PATIENCE;
  const late = Promise.withResolvers<HubCheck>();
  const stop = new AbortController();
  const cancel = timers.after(lookMs, () => {
    stop.abort();
    late.resolve(
      checkOf({ problems: [unreachable(`the hub did not answer everything within ${lookMs / 1000} s`)] }),
    );
  });
  const options: CallOptions = {
    effectId: `hub-check/${hub}`,
    deadlineMs: callMs,
    signal: AbortSignal.any([signal, stop.signal]),
  };
  try {
    return await Promise.race([looked(look, options), late.promise]);
  } catch (error) {
    // A port never throws for what it finds wrong, so this is a fault of ours; the hub is not used until it is mended.
    if (!signal.aborted) logger.error({ err: error, hub }, 'hub not checked');
    return checkOf({ problems: [unreachable('the check itself failed; see the log of the service')] });
  } finally {
    cancel();
    stop.abort();
  }
};

const unreachable = (message: string): HubProblem => ({ code: 'Unreachable', message });

const looked = async (look: Look, options: CallOptions): Promise<HubCheck> => {
  const { cluster, automation, thorough } = look;
  const [report, failing] = await Promise.all([
    cluster.check({ ...options, thorough }),
    automation === undefined ? undefined : automation.check(options),
  ]);
  const connects = report.problems.every(({ code }) => !SILENT.includes(code));
  // Counting is a help and no requirement: rights that do not show the hosts, or a fault meanwhile, leave them unknown.
  const hosts =
    connects && report.canReadAgents !== false
      ? await cluster.inventory(options).catch(() => undefined)
      : undefined;
  const lacking = connects ? await lackedKinds(look, report, options) : report.lacking;
  const { lacking: _onHub, ...rest } = report;
  return checkOf({ ...rest, ...defined({ lacking }) }, failing?.problems, hosts);
};

/** Of a kind the first want says enough. What automation does not tell now is told by the next look. */
const lackedKinds = async (
  { automation, thorough }: Look,
  { lacking: onHub }: HubReport,
  options: CallOptions,
): Promise<HubReport['lacking']> => {
  if (automation?.lacking === undefined || onHub === undefined) return onHub;
  const kinds = ownedObjects().filter(
    ({ kind, required, withoutPlaybook }) =>
      required !== true && withoutPlaybook !== true && !onHub.some((lacked) => lacked.kind === kind),
  );
  try {
    return [...onHub, ...(await automation.lacking(kinds, { ...options, thorough }))];
  } catch (error) {
    if (error instanceof AutomationError) return undefined;
    throw error;
  }
};

/** With these nothing more can be asked. */
const SILENT: readonly string[] = [
  'InvalidKubeconfig',
  'Unreachable',
  'CredentialsRefused',
  'DifferentCluster',
];

const checkOf = (report: HubReport, failing?: readonly string[], hosts?: HostCounts): HubCheck => {
  const automation = failing?.map((message) => ({ code: 'AutomationFailing', message }));
  const { problems, ...rest } = report;
  return {
    ...rest,
    problems: [...problems, ...(automation ?? [])],
    ...defined({ hosts }),
    findings: { ...findingsOf(report), ...defined({ automation, hosts }) },
  };
};

/**
 * How the automation of a hub is called in a mode, by default in that of the hub; undefined where its operator runs it, or
 * where no address is known. A hub that was switched has kept what its orders of the other mode need; where that
 * was cleared both are called in the same way.
 */
export const automationConnectionOf = (
  hub: Pick<RegisteredHub, 'facts' | 'automation' | 'formerAutomation' | 'tenant'>,
  mode: HubMode = hub.facts.mode,
): AutomationConnection | undefined => {
  const { facts, tenant } = hub;
  if (mode === 'operator') return undefined;
  const settings = mode === facts.mode ? undefined : own(facts.formerAutomation ?? {}, mode);
  const secrets = mode === facts.mode ? undefined : own(hub.formerAutomation ?? {}, mode);
  const url = (own(facts.endpoints, mode) ?? '') || settings?.endpoint;
  if (url === undefined || url === '') return undefined;
  const kept = settings !== undefined || secrets !== undefined;
  const { templatePrefix, ca } = kept ? (settings ?? { templatePrefix: 'osac' }) : facts.automation;
  return {
    hub: facts.id,
    mode,
    url,
    templatePrefix,
    ...(ca === undefined ? {} : { ca }),
    ...(kept ? secrets : hub.automation),
    tenant,
  };
};
