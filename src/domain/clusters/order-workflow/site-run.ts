import type { DelegatedStep } from '../../hubs/hub-facts.ts';
import { defined, listAt, numberAt, objectAt, own, stringAt, textOf } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import { addressText, moved, parseAddress } from '../../ranges.ts';
import { CLUSTER_CATEGORY } from '../cluster.ts';
import { orderName } from '../cluster-order-manifest.ts';
import { hubOf, orderOf, wantedClaim, type OrderRun } from './run.ts';

/** What an order holds on the site of its hub, read from the results of its steps. */

/** Annotation of an order that is kept as it is when it fails: `true`. */
export const KEEP_ON_FAILURE = 'fulfillment-ledger/keep-on-failure';

/** Where the ledger does some step. It outlives the place of an order that was withdrawn. */
export const siteOf = (run: OrderRun): OrderRun['memo']['site'] => {
  const { id, site } = hubOf(run) ?? {};
  return id === undefined || site === undefined ? run.memo.site : { hub: id, ...site };
};

/** The ledger does this step of the order. */
export const does =
  (step: DelegatedStep) =>
  (run: OrderRun): boolean =>
    siteOf(run)?.steps.includes(step) === true;

export const isLeft = ({ ending, aborted }: OrderRun): boolean =>
  ending !== undefined || aborted !== undefined;

/** A failure before it was READY has everything given back. */
export const isUndoneOnFailure = (run: OrderRun): boolean => {
  const { subject } = run;
  const wasReady = subject.status === 'dispatched' && subject.built !== undefined;
  const isKept = own(orderOf(run).annotations, KEEP_ON_FAILURE) === 'true';
  return siteOf(run) !== undefined && !wasReady && !isKept;
};

export const holder = (run: OrderRun): JsonObject => ({ kind: CLUSTER_CATEGORY, id: run.id });

export const resultOf = ({ done }: OrderRun, kind: string): JsonObject => own(done, kind)?.result ?? {};

/** The last answer of a step, if it was to wait. `isOver`: something may have changed since. */
export const waitOf = (run: OrderRun, kind: string) => {
  const { at = '', times = 0, result } = own(run.done, kind) ?? {};
  const message = stringAt(result, 'waiting');
  if (message === '') return undefined;
  return {
    step: kind,
    at,
    times,
    message,
    until: stringAt(result, 'until'),
    isOver: (own(run.memo.asked, kind) ?? 0) >= times,
  };
};

/** Nodes by host type: what the agents of an order are. */
export const wantedAgents = (run: OrderRun): JsonObject => ({ ...wantedClaim(run).nodes });

const objectsAt = (value: JsonObject, key: string): JsonObject[] =>
  listAt(value, key).map((one) => one as JsonObject);

const agentsOf = (run: OrderRun): JsonObject[] => objectsAt(resultOf(run, 'agents'), 'agents');
export const agentIds = (run: OrderRun): string[] => agentsOf(run).map((agent) => stringAt(agent, 'id'));

/** Its VLAN on the switches. */
export const networkOf = (run: OrderRun): JsonObject => {
  const vlan = resultOf(run, 'vlan');
  return { fabric: stringAt(vlan, 'fabric'), vlanId: numberAt(vlan, 'vlanId') };
};

/** Ports of its agents in the fabric of its VLAN. */
export const portsOf = (run: OrderRun): JsonObject[] => {
  const network = networkOf(run);
  return agentsOf(run).flatMap((agent) =>
    objectsAt(agent, 'links')
      .filter(({ fabric }) => fabric === network['fabric'])
      .map((link) => ({ ...network, switch: textOf(link['switch']), port: textOf(link['port']) })),
  );
};

export const l3NetworkOf = (run: OrderRun): JsonObject => {
  const { vrf = '', prefixes = [], gateways = [] } = resultOf(run, 'prefix');
  return { vrf, prefixes, gateways, dhcp: true };
};

export const bindingOf = (run: OrderRun): JsonObject => {
  const { vrf = '', prefixes = [] } = l3NetworkOf(run);
  return { ...networkOf(run), vrf, prefixes };
};

/** Of the newest allocation: what is made again after its removal is another one. */
export const ownerOf = (run: OrderRun, of: 'vlan' | 'prefix'): JsonObject => ({
  order: run.id,
  generation: Math.max(1, numberAt(resultOf(run, of), 'generation')),
});

export const publicAddresses = (run: OrderRun): { readonly [endpoint: string]: string } => {
  const { ids } = orderOf(run).externalIps ?? {};
  const shown = objectAt(resultOf(run, 'public-addresses'), 'values');
  return defined({
    api: stringAt(shown, ids?.API.ip ?? '') || undefined,
    ingress: stringAt(shown, ids?.INGRESS.ip ?? '') || undefined,
  });
};

export const natsOf = (run: OrderRun): JsonObject[] => {
  const vrf = stringAt(l3NetworkOf(run), 'vrf');
  return Object.entries(publicAddresses(run)).map(([endpoint, address]) => ({ address, endpoint, vrf }));
};

/** Addresses behind the gateways of its own prefixes: the first one for the API, the second one for ingress. */
const inside = (run: OrderRun, offset: bigint): readonly string[] =>
  listAt(l3NetworkOf(run), 'gateways').flatMap((gateway) => {
    const address = parseAddress(textOf(gateway));
    return address === undefined ? [] : [addressText(moved(address, offset))];
  });

/** Resolvers outside keep them for so long: addresses rest for longer than that. */
const TTL_SECONDS = 1_800;

export const recordsOf = (run: OrderRun): JsonObject[] => {
  const domain = `${orderName(run.id)}.${siteOf(run)?.baseDomain ?? ''}`;
  const { api, ingress } = publicAddresses(run);
  const named = (name: string, values: readonly string[]): JsonObject[] =>
    (['A', 'AAAA'] as const).flatMap((type) => {
      const ofType = values.filter((value) => value.includes(':') === (type === 'AAAA'));
      return ofType.length === 0
        ? []
        : [{ name: `${name}.${domain}`, type, values: [...ofType], ttlSeconds: TTL_SECONDS }];
    });
  const insideApi = inside(run, 1n);
  return [
    ...named('api', api === undefined ? insideApi : [api]),
    ...named('api-int', insideApi),
    ...named('*.apps', ingress === undefined ? inside(run, 2n) : [ingress]),
  ];
};
