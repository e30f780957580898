import { expect } from 'chai';
import fc from 'fast-check';
import { agentPoolDecider } from '../../../../src/domain/agents/agent-pool.ts';
import { nextDiscoveries, type AgentPoolCommand } from '../../../../src/domain/agents/decisions.ts';
import type { AgentPoolEvent } from '../../../../src/domain/agents/event-types.ts';
import {
  AGENT_STATES,
  agentsOf,
  stockOf,
  type AgentPoolState,
} from '../../../../src/domain/agents/pool-state.ts';
import { agentsIn } from '../../../../src/domain/agents/queue.ts';
import { isRejection } from '../../../../src/domain/decider.ts';
import { cases, check } from '../../../support/property.ts';
import { look, minutes, order, release, seen, select, wiped } from '../../../support/agents/pool-words.ts';

const CLASSES = ['fc430', 'gpu'];
const { initialState, evolve, decide } = agentPoolDecider;

type Step =
  | {
      readonly do: 'select';
      readonly order: number;
      readonly wanted: readonly number[];
      readonly low: boolean;
    }
  | { readonly do: 'release' | 'bind' | 'shrink'; readonly order: number }
  | { readonly do: 'look'; readonly gone: readonly number[]; readonly failed: readonly number[] }
  | { readonly do: 'discover' | 'review' | 'clean' };

const number = fc.nat({ max: 7 });
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('select' as const),
      order: number,
      wanted: fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 2 })),
      low: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('release', 'bind', 'shrink'), order: number }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('look' as const),
      gone: fc.array(number, { maxLength: 1 }),
      failed: fc.array(number, { maxLength: 1 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('discover', 'review', 'clean') }) },
);

/** Eight agents of two classes; what the site wiped by then it shows as clean. */
const HOSTS = Array.from({ length: 8 }, (_, n) => ({ id: `a${n}`, hostClass: CLASSES[Number(n > 5)] ?? '' }));

const commandOf = (step: Step, state: AgentPoolState, at: string): AgentPoolCommand => {
  switch (step.do) {
    case 'select': {
      const wanted = Object.fromEntries(CLASSES.map((name, n) => [name, step.wanted[n] ?? 0]));
      return select(`o${step.order}`, wanted, at, step.low ? 'low' : 'high');
    }
    case 'release':
      return release(`o${step.order}`, {}, at);
    case 'shrink':
      return release(`o${step.order}`, { keep: { fc430: 1 } }, at);
    case 'bind': {
      const holder = order(`o${step.order}`);
      return { type: 'BindAgents', at, holder, generation: agentsOf(state, holder)[0]?.generation ?? 1 };
    }
    case 'look': {
      const shown = HOSTS.filter((_, n) => !step.gone.includes(n)).map((host, n) =>
        seen(host.id, {
          hostClass: host.hostClass,
          state: step.failed.includes(n) ? 'failed' : 'free',
          cleaned: wiped(at),
        }),
      );
      return look(shown, { at, hardware: { fc430: 3 } });
    }
    case 'discover': {
      const [next = { discovery: 'fc430-1', attempt: 1 }] = nextDiscoveries(state, 'fc430', 1, at);
      return { type: 'StartDiscovery', at, hostClass: 'fc430', ...next };
    }
    case 'review':
      return { type: 'ReviewTarget', at, hostClass: 'fc430', serviceLevel: 0.95, leadHours: 1, floor: 2 };
    case 'clean':
      return { type: 'CleanAgent', at, agent: 'a1' };
  }
};

/** Every agent that ever appeared is in one state, and held exactly while it is reserved or bound. */
const conserves = (state: AgentPoolState, discovered: ReadonlySet<string>): void => {
  const agents = agentsIn(state);
  expect(new Set(agents.map(({ id }) => id))).to.deep.equal(discovered);
  for (const hostClass of CLASSES) {
    const ofClass = agents.filter((agent) => agent.hostClass === hostClass);
    const { counts, free } = stockOf(state, hostClass);
    for (const each of AGENT_STATES)
      expect(counts[each] ?? 0, each).to.equal(ofClass.filter((agent) => agent.state === each).length);
    expect(AGENT_STATES.reduce((sum, each) => sum + (counts[each] ?? 0), 0)).to.equal(ofClass.length);
    expect(new Set(free)).to.deep.equal(
      new Set(ofClass.filter((agent) => agent.state === 'free').map(({ id }) => id)),
    );
  }
  const held = Object.values(state.held).flatMap((bucket) => Object.values(bucket).flat());
  expect(new Set(held).size, 'no agent has two holders').to.equal(held.length);
  expect(new Set(held)).to.deep.equal(
    new Set(agents.filter((agent) => ['reserved', 'bound'].includes(agent.state)).map(({ id }) => id)),
  );
};

const FROM: { readonly [type: string]: readonly string[] } = {
  AgentsReserved: ['free'],
  AgentsReleased: ['reserved', 'bound'],
  AgentCleaned: ['cleaning'],
};
const isAllowed = (state: AgentPoolState, event: AgentPoolEvent): void => {
  const ids = 'agents' in event.data ? event.data.agents : 'agent' in event.data ? [event.data.agent] : [];
  const from = FROM[event.type];
  for (const agent of agentsIn(state))
    if (from !== undefined && ids.includes(agent.id)) expect(from, event.type).to.include(agent.state);
};

/** Nobody has a part of what it still waits for: what is reserved is all that was missing. */
const isWhole = (state: AgentPoolState, event: AgentPoolEvent): void => {
  if (event.type !== 'AgentsReserved') return;
  const { holder, agents, priority } = event.data;
  const waited = state.waiting.find((each) => each.holder.id === holder.id);
  for (const hostClass of CLASSES) {
    const got = agents.filter((id) => HOSTS.find((host) => host.id === id)?.hostClass === hostClass).length;
    if (waited !== undefined) expect(got).to.equal(waited.wanted[hostClass] ?? 0);
    const { free, target } = stockOf(state, hostClass);
    if (priority === 'low' && got > 0)
      expect(free.length - got, 'the floor').to.be.at.least(target?.minFree ?? 0);
  }
};

describe('agents: whatever happens', () => {
  it('every agent is in one state and has one holder at most, and nobody holds a part of its wish', () =>
    check(
      fc.property(fc.array(steps, { maxLength: 40 }), (script) => {
        let state = initialState();
        const discovered = new Set<string>();
        for (const [n, step] of script.entries()) {
          const decision = decide(state, commandOf(step, state, minutes(n * 7)));
          if (isRejection(decision)) continue;
          for (const event of decision) {
            isAllowed(state, event);
            isWhole(state, event);
            if (event.type === 'AgentDiscovered') discovered.add(event.data.agent);
            state = evolve(state, event);
            conserves(state, discovered);
          }
        }
      }),
      { numRuns: cases(2_000) },
    ));
});
