import { expect } from 'chai';
import { createAddressEffects } from '../../../src/app/hubs/address-effects.ts';
import { aggregateOf } from '../../../src/domain/kinds.ts';
import { externalIpPool } from '../../../src/domain/networks/external-ip-pool.resource.ts';
import { commandContext, effectCall, hubFixture } from '../../support/hubs/hub-fixture.ts';
import { manualTime } from '../../support/manual-time.ts';

const at = '2026-11-23T09:00:00.000Z';
const pool = aggregateOf(externalIpPool);
const document = { spec: { cidrs: ['192.0.2.0/28'], ip_family: 'IP_FAMILY_IPV4' } };
const common = { at, tenant: 'shared', project: '', name: 'p', creator: 'someone' };
const place = {
  hub: 'h',
  namespace: 'osac',
  objectName: 'p',
  controller: 'operator',
  simulated: true,
} as const;

describe('what external IPs ask of their pool', () => {
  it('no place of a pool that was aborted and is about to leave its hub', async () => {
    const { commandRunner, stop } = hubFixture();
    const effects = createAddressEffects({ commandRunner, clock: manualTime().clock });
    const asked = () =>
      effects('place', { pool: 'p', holder: { kind: 'externalIp', id: 'i' } }, effectCall());
    const when = (command: Parameters<typeof pool.decider.decide>[1]) =>
      commandRunner.execute(pool, 'p', command, commandContext(command.type));
    await when({ type: 'CreateDocument', id: 'p', ...common, document });
    await when({ type: 'PlaceOnHub', at, ...place });
    expect(await asked()).to.deep.equal({ outcome: 'done', result: { place } });
    await when({ type: 'AbortOrder', at, reason: 'elsewhere' });
    expect(await asked()).to.deep.equal({ outcome: 'done', result: { place: null } });
    await stop();
  });
});
