import { expect } from 'chai';
import { ownedObjects } from '../../../../src/domain/hub-objects.ts';
import { templateOf } from '../../../../src/domain/hubs/hub-object.ts';

describe('what automation makes of each kind of object', () => {
  const kinds = ownedObjects().filter(
    ({ required, withoutPlaybook }) => required !== true && withoutPlaybook !== true,
  );
  it('is a webhook of the rulebook, or nothing in mode eda', () => {
    const webhooks = Object.fromEntries(kinds.map(({ kind, webhook }) => [kind, webhook]));
    expect(webhooks).to.include({
      ExternalIPPool: 'create-public-ip-pool',
      ExternalIP: 'create-public-ip',
      ExternalIPAttachment: 'attach-public-ip',
      VirtualNetwork: 'create-virtual-network',
      Subnet: 'create-subnet',
      SecurityGroup: undefined,
      NATGateway: undefined,
      Volume: undefined,
    });
  });
  it('is a job template named after it', () => {
    const templates = Object.fromEntries(kinds.map((kind) => [kind.kind, templateOf(kind)]));
    expect(templates).to.include({
      ExternalIPPool: 'create-external-ip-pool',
      ExternalIP: 'create-external-ip',
      ExternalIPAttachment: 'attach-external-ip',
      VirtualNetwork: 'create-virtual-network',
      SecurityGroup: 'create-security-group',
      NATGateway: 'create-nat-gateway',
      Volume: 'create-volume',
    });
  });
});
