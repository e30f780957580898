import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { parseRange, type Range } from '../../../src/domain/ranges.ts';
import { parseStreamName } from '../../../src/domain/stream-name.ts';
import type { StoredEvent } from './invariants.ts';

type Claim = { readonly kind: string; readonly id: string; readonly of: string; readonly range?: Range };

const USERS: readonly string[] = ['NATGatewayOrdered', 'ExternalIPAttachmentOrdered'];
const RELEASES: readonly string[] = ['SubnetRangesReleased', 'ExternalIPDetached'];

/** What must hold of networks at every event, seen without the deciders: no subnets overlap, an address has one user. */
export const createNetworkInvariants = (violated: (what: string) => void) => {
  let claims: readonly Claim[] = [];
  const take = (claim: Claim, isInTheWay: (other: Claim) => boolean): void => {
    const other = claims.find((one) => one.of === claim.of && one.id !== claim.id && isInTheWay(one));
    if (other !== undefined)
      violated(`${claim.kind} ${claim.id} and ${other.kind} ${other.id} both have ${claim.of}`);
    claims = [...claims, claim];
  };
  return {
    see: ({ stream, type, data }: StoredEvent): void => {
      const { category: kind, id } = parseStreamName(stream);
      const spec = objectAt(objectAt(data, 'document'), 'spec');
      const named = (field: string): string => stringAt(objectAt(spec, field), 'id');
      if (type === 'SubnetOrdered') {
        const range = parseRange(stringAt(spec, 'ipv4_cidr'));
        if (range === undefined) return;
        take(
          { kind, id, of: `ranges of ${named('virtual_network')}`, range },
          (other) =>
            other.range !== undefined && other.range.from <= range.to && range.from <= other.range.to,
        );
      }
      if (type === 'ExternalIPAllocated')
        take({ kind, id, of: `address ${stringAt(data, 'address')}` }, () => true);
      if (USERS.includes(type)) take({ kind, id, of: `external IP ${named('external_ip')}` }, () => true);
      const holder = RELEASES.includes(type) ? stringAt(objectAt(data, 'holder'), 'id') : '';
      const gone = /^(Subnet|NATGateway|ExternalIP|ExternalIPAttachment)Deleted$/.test(type) ? id : holder;
      if (gone !== '') claims = claims.filter((one) => one.id !== gone);
    },
  };
};
