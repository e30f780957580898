import { SiteError, type Site } from '../../../src/app/site/ports.ts';
import { createCaller, type HubWitness, type NetworkFaults } from './caller.ts';
import type { Life } from './life.ts';

/** A site as one incarnation reaches it. */
export const createSitePort = (
  zone: string,
  site: Site,
  {
    life,
    faults,
    witness,
  }: { readonly life: Life; readonly faults: () => NetworkFaults; readonly witness: HubWitness },
): Site => {
  const call = createCaller({
    life,
    faults,
    witness,
    where: `site ${zone}`,
    failure: (kind, why) => new SiteError(kind, why),
    describe: (outcome) => ('error' in outcome ? String(outcome.error) : 'done'),
  });
  const { fabric, l3, dns, agents, discovery, tasks } = site;
  return {
    fabric: {
      createNetwork: (network, owner, by) =>
        call('configure VLAN', true, (to) => fabric.createNetwork(network, owner, to), by),
      deleteNetwork: (network, owner, by) =>
        call('remove VLAN', true, (to) => fabric.deleteNetwork(network, owner, to), by),
      bindPort: (port, owner, by) => call('bind port', true, (to) => fabric.bindPort(port, owner, to), by),
      resetPort: (port, owner, by) => call('reset port', true, (to) => fabric.resetPort(port, owner, to), by),
      observe: (of, by) => call('look at fabric', false, (to) => fabric.observe(of, to), by),
    },
    l3: {
      createNetwork: (network, owner, by) =>
        call('configure prefix', true, (to) => l3.createNetwork(network, owner, to), by),
      deleteNetwork: (network, owner, by) =>
        call('remove prefix', true, (to) => l3.deleteNetwork(network, owner, to), by),
      bind: (binding, owner, by) => call('bind prefix', true, (to) => l3.bind(binding, owner, to), by),
      unbind: (binding, owner, by) => call('unbind prefix', true, (to) => l3.unbind(binding, owner, to), by),
      ensureNat: (nat, owner, by) => call('ensure NAT', true, (to) => l3.ensureNat(nat, owner, to), by),
      removeNat: (nat, owner, by) => call('remove NAT', true, (to) => l3.removeNat(nat, owner, to), by),
      observe: (of, by) => call('look at L3', false, (to) => l3.observe(of, to), by),
    },
    dns: {
      ensure: (records, owner, by) =>
        call('ensure records', true, (to) => dns.ensure(records, owner, to), by),
      remove: (records, owner, by) =>
        call('remove records', true, (to) => dns.remove(records, owner, to), by),
      propagated: (records, by) => call('look at servers', false, (to) => dns.propagated(records, to), by),
      observe: (of, by) => call('look at DNS', false, (to) => dns.observe(of, to), by),
    },
    agents: {
      label: (agent, owner, by) => call('label agent', true, (to) => agents.label(agent, owner, to), by),
      clean: (agent, owner, by) => call('clean agent', true, (to) => agents.clean(agent, owner, to), by),
      observe: (of, by) => call('look at agents', false, (to) => agents.observe(of, to), by),
    },
    // What the pool asks for by itself is no moment of an order.
    discovery: {
      discover: (wanted, by) => call('discover', false, (to) => discovery.discover(wanted, to), by),
      remaining: (of, by) => call('look at hardware', false, (to) => discovery.remaining(of, to), by),
      observe: (of, by) => call('look at discoveries', false, (to) => discovery.observe(of, to), by),
    },
    tasks: { run: (task, owner, by) => call('run task', true, (to) => tasks.run(task, owner, to), by) },
  };
};
