import { expect } from 'chai';
import { neverHosted, type WantedHost } from '../../../../src/domain/bare-metal/possible-hosts.ts';
import { limitsWhenEmpty, type StandingHub } from '../../../../src/domain/clusters/servable.ts';
import { hubFacts } from '../../../../src/domain/hubs/hub-facts.ts';
import { RESOURCE_CLASS_LABEL } from '../../../../src/domain/hubs/hub-objects.ts';

type Counts = { readonly [resourceClass: string]: number };
/** `declared`: its capacity; `foreign`: hosts that it shows, all of which others hold now. */
const hub = (
  id: string,
  { declared, foreign, zone = '' }: { declared?: Counts; foreign?: Counts; zone?: string } = {},
): StandingHub => {
  const hosts = foreign && {
    at: '2026-11-23T12:00:00.000Z',
    counts: Object.fromEntries(
      Object.entries(foreign).map(([type, count]) => [type, { free: 0, ours: 0, foreign: count }]),
    ),
  };
  return {
    hub: { ...hubFacts({ id, document: { spec: { namespace: 'osac' } } }), zone },
    deleting: false,
    adapter: true,
    health: hosts === undefined ? {} : { hosts },
    limits: limitsWhenEmpty(declared === undefined ? {} : { nodes: declared }, hosts),
  };
};
const refusal = (wanted: Partial<WantedHost>, ...hubs: readonly StandingHub[]): string | undefined =>
  neverHosted({ hostType: 'h100', labels: { class: 'h100' }, ...wanted }, { hubs })?.message;
const byClass = { labels: { [RESOURCE_CLASS_LABEL]: 'h100' } };
const NONE =
  "field 'spec.catalog_item': no host of type 'h100' can be had: choose another item, or ask your provider";

describe('bare metal: a host that can never be had', () => {
  it('is of a type of which every hub declares none', () => {
    expect(refusal({}, hub('sim-1', { declared: { fc430: 4 } }))).to.equal(NONE);
    expect(refusal({}, hub('sim-1', { declared: { fc430: 4 } }), hub('sim-2'))).to.equal(undefined);
    expect(refusal({}, hub('sim-1', { declared: { h100: 1 } }))).to.equal(undefined);
  });
  it('has a resource class that no hub shows; one that others hold may be free later', () => {
    expect(refusal(byClass, hub('a', { foreign: { fc430: 4 } }))).to.equal(NONE);
    expect(refusal(byClass, hub('a', { foreign: { h100: 1 } }))).to.equal(undefined);
    expect(refusal(byClass, hub('a', { foreign: { fc430: 1 }, declared: { h100: 1 } }))).to.equal(undefined);
  });
  it('is not known by other labels where a hub shows its hosts', () => {
    expect(refusal({}, hub('a', { foreign: { fc430: 4 } }))).to.equal(undefined);
  });
  it('is looked for in the zone that was asked for', () => {
    const hubs = [hub('a', { declared: { fc430: 1 }, zone: 'east' }), hub('b', { zone: 'west' })];
    expect(refusal({ zone: 'east' }, ...hubs)).to.contain("no host of type 'h100' can be had in zone 'east'");
    expect(refusal({ zone: 'west' }, ...hubs)).to.equal(undefined);
    expect(refusal({ zone: 'mars' }, ...hubs)).to.equal(undefined);
  });
  it('is nothing without a hub, or where its template names no type', () => {
    expect(refusal({})).to.equal(undefined);
    expect(refusal({ hostType: '', labels: {} }, hub('sim-1', { declared: { fc430: 4 } }))).to.equal(
      undefined,
    );
  });
});
