import {
  externalIpPool,
  type PoolCommand,
  type PoolEvent,
} from '../../../../src/domain/networks/external-ip-pool.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

export const at = '2026-11-23T09:00:00.000Z';
export const later = '2026-11-23T10:00:00.000Z';
export const tomorrow = '2026-11-24T09:00:00.000Z';
export const facts = { at, id: 'p1', tenant: 'shared', project: '', name: 'public', creator: 'someone' };
export const IPV4 = { cidrs: ['192.0.2.0/30'], ip_family: 'IP_FAMILY_IPV4' };
export const place = {
  hub: 'h1',
  namespace: 'osac',
  objectName: 'externalippool-a',
  simulated: true,
  controller: 'operator',
} as const;
export const one = { kind: 'externalIp', id: 'one' };
export const two = { kind: 'externalIp', id: 'two' };
export const three = { kind: 'externalIp', id: 'three' };

export const order = (document: JsonObject): PoolCommand => ({ type: 'CreateDocument', ...facts, document });
export const ordered = (spec: JsonObject = IPV4, annotations?: JsonObject): PoolEvent => ({
  type: 'ExternalIPPoolOrdered',
  data: { ...facts, document: { ...(annotations === undefined ? {} : { metadata: { annotations } }), spec } },
});
export const quarantine = (duration: string) => ({ 'fulfillment-ledger/quarantine': duration });
export const placed: PoolEvent = { type: 'ExternalIPPoolPlaced', data: { at, ...place } };
export const onOperator: PoolEvent = {
  type: 'ExternalIPPoolPlaced',
  data: { at, ...place, simulated: false },
};
export const ready: PoolEvent = { type: 'ExternalIPPoolBecameReady', data: { at } };
export const deleted: PoolEvent = { type: 'ExternalIPPoolDeleted', data: { at } };
export const deleting: PoolEvent = { type: 'ExternalIPPoolDeletionRequested', data: { at } };
export const assigned = (holder: typeof one, generation: number, address: string): PoolEvent => ({
  type: 'AddressAssigned',
  data: { at, holder, generation, address },
});
export const released = (
  holder: typeof one,
  generation: number,
  address: string,
  restsUntil?: string,
): PoolEvent => ({
  type: 'AddressReleased',
  data: { at, holder, generation, address, ...(restsUntil === undefined ? {} : { restsUntil }) },
});
export const claim = (holder: typeof one, wanted?: string, when = at): PoolCommand => ({
  type: 'ClaimAddress',
  at: when,
  holder,
  ...(wanted === undefined ? {} : { wanted }),
});
export const release = (holder: typeof one, generation: number, when = at): PoolCommand => ({
  type: 'ReleaseAddress',
  at: when,
  holder,
  generation,
});

export const { given } = specify(externalIpPool.decider);
export const shown = (...history: PoolEvent[]): JsonObject => {
  const view = externalIpPool.view(given(...history).state());
  if (!view.exists) throw new Error('the pool shows nothing');
  return view.document;
};
export const status = (...history: PoolEvent[]): JsonObject => objectAt(shown(...history), 'status');
