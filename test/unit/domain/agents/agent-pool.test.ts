import { expect } from 'chai';
import { agentPoolDecider } from '../../../../src/domain/agents/agent-pool.ts';
import { nextDiscoveries, type AgentPoolCommand } from '../../../../src/domain/agents/decisions.ts';
import type { AgentPoolEvent } from '../../../../src/domain/agents/event-types.ts';
import { etaOf, positionOf } from '../../../../src/domain/agents/queue.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import {
  awaited,
  bound,
  cleaned,
  discovered,
  failedAgent,
  look,
  minutes,
  order,
  release,
  released,
  reserved,
  seen,
  select,
  START,
  wiped,
} from '../../../support/agents/pool-words.ts';

const { given } = specify(agentPoolDecider);
const three = [discovered('a1'), discovered('a2'), discovered('g1', 'gpu')];

describe('agents: selection', () => {
  it('gives an order all of its agents over all classes, those that are free for the longest time first', () =>
    given(...three)
      .when(select('o1', { fc430: 1, gpu: 1 }))
      .thenEvents(reserved('o1', 1, ['a1', 'g1'])));

  it('gives none when one class is short, and lets the order wait', () =>
    given(...three)
      .when(select('o1', { fc430: 2, gpu: 2 }))
      .thenEvents(awaited('o1', { fc430: 2, gpu: 2 }, { fc430: 2, gpu: 1 })));

  it('says nothing twice', () => {
    given(...three, reserved('o1', 1, ['a1']))
      .when(select('o1', { fc430: 1 }))
      .thenNothing();
    given(awaited('o1', { fc430: 1 }, { fc430: 0 }))
      .when(select('o1', { fc430: 1 }))
      .thenNothing();
  });

  it('adds what a larger cluster lacks, as a generation of its own', () =>
    given(...three, reserved('o1', 1, ['a1']))
      .when(select('o1', { fc430: 2 }))
      .thenEvents(reserved('o1', 2, ['a2'])));

  it('ends the wait of an order that wants no more than it has', () =>
    given(...three, reserved('o1', 1, ['a1']), awaited('o1', { fc430: 5 }, { fc430: 1 }))
      .when(select('o1', { fc430: 1 }))
      .thenEvents(released('o1', [])));

  for (const size of [-1, 0.5, 2 ** 60])
    it(`refuses ${size} agents`, () =>
      given(...three)
        .when(select('o1', { fc430: size }))
        .thenRejected('INVALID_AGENT_COUNT', { kind: 'invalid' }));

  it('lets an order of a class without any hardware wait, without a time', () => {
    const { state } = given(awaited('o1', { none: 1 }, { none: 0 }), {
      type: 'HardwareCounted',
      data: { at: START, hostClass: 'none', known: 0 },
    });
    expect(etaOf(state(), order('o1'), START)).to.equal(null);
  });
});

describe('agents: the queue', () => {
  const full = [discovered('a1'), reserved('o0', 1, ['a1']), released('o0', ['a1'])];
  const clean = look([seen('a1', { cleaned: wiped(minutes(9)) })], { at: minutes(9) });
  const isClean: AgentPoolEvent = {
    type: 'AgentCleaned',
    data: { at: minutes(9), agent: 'a1', cleaned: wiped(minutes(9)) },
  };
  const wait = (id: string, at: number, n = 1, priority: 'high' | 'low' = 'high') =>
    awaited(id, { fc430: n }, { fc430: 0 }, minutes(at), priority);

  it('serves whoever came first, in the append in which the agent becomes free', () =>
    given(...full, wait('o1', 1), wait('o2', 2))
      .when(clean)
      .thenEvents(isClean, reserved('o1', 2, ['a1'], minutes(9))));

  it('serves high priority before low', () =>
    given(...full, wait('o1', 1, 1, 'low'), wait('o2', 2))
      .when(clean)
      .thenEvents(isClean, reserved('o2', 2, ['a1'], minutes(9))));

  it('lets a small order pass a large one that cannot be served', () =>
    given(...full, wait('o1', 1, 2), wait('o2', 2))
      .when(clean)
      .thenEvents(isClean, reserved('o2', 2, ['a1'], minutes(9))));

  it('keeps what becomes free for an order that waited for more than 30 minutes', () => {
    const late = { ...clean, at: minutes(32) };
    given(...full, wait('o1', 1, 2), wait('o2', 2))
      .when(late)
      .thenEvents({ ...isClean, data: { ...isClean.data, at: minutes(32) } } as AgentPoolEvent);
    given(...full, wait('o1', 2, 2), wait('o2', 3))
      .when(late)
      .thenEvents(
        { ...isClean, data: { ...isClean.data, at: minutes(32) } } as AgentPoolEvent,
        reserved('o2', 2, ['a1'], minutes(32)),
      );
  });

  it('holds no class back for an order that waits for another one', () =>
    given(discovered('a1'), awaited('o1', { gpu: 1 }, { gpu: 0 }))
      .when(select('o2', { fc430: 1 }, minutes(40)))
      .thenEvents(reserved('o2', 1, ['a1'], minutes(40))));

  it('leaves the floor to orders of high priority', () => {
    const floor: AgentPoolEvent = {
      type: 'HotPoolTargetChanged',
      data: {
        at: START,
        hostClass: 'fc430',
        target: 3,
        minFree: 1,
        ordersPerHour: 1,
        leadHours: 1,
        meanSize: 1,
        meanSquare: 1,
        serviceLevel: 0.95,
      },
    };
    given(discovered('a1'), floor)
      .when(select('o1', { fc430: 1 }, START, 'low'))
      .thenEvents(awaited('o1', { fc430: 1 }, { fc430: 1 }, START, 'low'));
    given(discovered('a1'), floor)
      .when(select('o1', { fc430: 1 }))
      .thenEvents(reserved('o1', 1, ['a1']));
  });

  it('serves the others when one gives up', () =>
    given(discovered('a1'), wait('o1', 1, 2), awaited('o2', { fc430: 1 }, { fc430: 0 }, minutes(2)))
      .when(release('o1', {}, minutes(40)))
      .thenEvents(released('o1', [], minutes(40)), reserved('o2', 1, ['a1'], minutes(40))));

  it('says the position, and when it is probably served', () => {
    const { state } = given(...full, wait('o1', 1), wait('o2', 2), {
      type: 'HardwareCounted',
      data: { at: START, hostClass: 'fc430', known: 1 },
    });
    expect(positionOf(state(), order('o2'), minutes(3))).to.equal(2);
    expect(etaOf(state(), order('o1'), minutes(3))).to.equal(minutes(20));
    expect(etaOf(state(), order('o2'), minutes(3))).to.equal(minutes(18));
  });
});

describe('agents: from reserved back to free', () => {
  const held = [...three, reserved('o1', 1, ['a1', 'a2'])];

  it('binds what was marked', () => {
    const bind = { type: 'BindAgents', at: START, holder: order('o1'), generation: 1 } as const;
    given(...held)
      .when(bind)
      .thenEvents(bound('o1', 1));
    given(...held, bound('o1', 1))
      .when(bind)
      .thenNothing();
    given(...held)
      .when({ ...bind, generation: 2 })
      .thenRejected('NO_AGENTS_HELD');
    given(...held)
      .when({ ...bind, holder: order('o2') })
      .thenRejected('NO_AGENTS_HELD');
  });

  it('gives up a reservation of which the site has an agent marked for somebody else', () =>
    given(...held)
      .when({ type: 'RejectAgent', at: START, holder: order('o1'), agent: 'a1', reason: 'is of o9' })
      .thenEvents(released('o1', ['a1', 'a2']), failedAgent('a1', 'is of o9')));

  it('wipes what is released, reserved or bound', () => {
    given(...held)
      .when(release('o1'))
      .thenEvents(released('o1', ['a1', 'a2']));
    given(...held, bound('o1', 1))
      .when(release('o1'))
      .thenEvents(released('o1', ['a1', 'a2']));
    given(...held, released('o1', ['a1', 'a2']))
      .when(release('o1'))
      .thenNothing();
  });

  it('releases nothing of others', () =>
    given(...held)
      .when(release('o2'))
      .thenNothing());

  it('keeps the oldest of a cluster that shrinks, and what came after a late release', () => {
    given(...held)
      .when(release('o1', { keep: { fc430: 1 } }))
      .thenEvents(released('o1', ['a2']));
    given(...three, reserved('o1', 1, ['a1']), reserved('o1', 2, ['a2']))
      .when(release('o1', { generation: 1 }))
      .thenEvents(released('o1', ['a1']));
  });

  it('takes no agent for clean without evidence of a wipe of its own', () => {
    const dirty = [...held, released('o1', ['a1', 'a2'])];
    const rest = [seen('a2', { state: 'cleaning' }), seen('g1', { hostClass: 'gpu' })];
    given(...dirty)
      .when(look([seen('a1'), ...rest]))
      .thenNothing();
    given(...dirty)
      .when(look([seen('a1', { cleaned: wiped(START) }), ...rest]))
      .thenEvents(cleaned('a1'));
    const again = [...dirty, cleaned('a1'), reserved('o2', 2, ['a1']), released('o2', ['a1'])];
    given(...again)
      .when(look([seen('a1', { cleaned: wiped(START) }), ...rest]))
      .thenNothing();
  });

  it('sets aside what fails, and frees it only by another wipe', () => {
    const dirty = [discovered('a1'), reserved('o1', 1, ['a1']), released('o1', ['a1'])];
    const failure = failedAgent('a1', 'it could not be wiped');
    given(...dirty)
      .when(look([seen('a1', { state: 'failed' })]))
      .thenEvents(failure);
    given(...dirty, failure)
      .when(look([seen('a1')]))
      .thenNothing();
    const started: AgentPoolEvent = { type: 'AgentCleaningStarted', data: { at: START, agent: 'a1' } };
    given(...dirty, failure)
      .when({ type: 'CleanAgent', at: START, agent: 'a1' })
      .thenEvents(started);
    given(...dirty, failure)
      .when(look([seen('a1', { cleaned: wiped(START) })]))
      .thenEvents(started, cleaned('a1'));
  });

  it('retires only what nobody uses', () => {
    const retire: AgentPoolCommand = { type: 'RetireAgent', at: START, agent: 'a1', reason: 'broken' };
    given(...held)
      .when(retire)
      .thenRejected('AGENT_IN_USE');
    given(discovered('a1'))
      .when(retire)
      .thenEvents({ type: 'AgentRetired', data: { at: START, agent: 'a1', reason: 'broken' } });
    given().when(retire).thenRejected('NO_SUCH_AGENT');
    given(discovered('a1')).when({ type: 'CleanAgent', at: START, agent: 'a1' }).thenRejected('AGENT_IN_USE');
  });
});

describe('agents: what the site shows', () => {
  const gone: AgentPoolEvent = {
    type: 'AgentRetired',
    data: { at: START, agent: 'a1', reason: 'the site shows it no longer' },
  };

  it('takes in free agents that appear, and leaves alone what others have', () => {
    const { links } = seen('a1');
    given()
      .when(look([seen('a1'), seen('a2', { state: 'labelled', owner: 'o9' })]))
      .thenEvents({ type: 'AgentDiscovered', data: { at: START, agent: 'a1', hostClass: 'fc430', links } });
  });

  it('sets aside a free agent that somebody marked', () =>
    given(discovered('a1'))
      .when(look([seen('a1', { state: 'labelled', owner: 'o9' })]))
      .thenEvents(failedAgent('a1', 'the site has it marked for order o9')));

  it('retires what is no longer there, unless an order has it, and wipes it when it comes back', () => {
    given(discovered('a1')).when(look([])).thenEvents(gone);
    given(discovered('a1'), reserved('o1', 1, ['a1']))
      .when(look([]))
      .thenNothing();
    given(discovered('a1'), gone)
      .when(look([seen('a1')]))
      .thenEvents({ type: 'AgentCleaningStarted', data: { at: START, agent: 'a1', generation: 1 } });
  });

  it('counts hosts that can still be asked for', () => {
    const counted = (known: number): AgentPoolEvent => ({
      type: 'HardwareCounted',
      data: { at: START, hostClass: 'fc430', known },
    });
    given()
      .when(look([], { hardware: { fc430: 5 } }))
      .thenEvents(counted(5));
    const asked = started('fc430-1', 1);
    given(counted(5), asked)
      .when(look([], { hardware: { fc430: 4 } }))
      .thenNothing();
    given(counted(5), asked)
      .when(look([], { hardware: { fc430: 9 } }))
      .thenEvents(counted(9));
    given()
      .when(look([], { hardware: { fc430: 0 } }))
      .thenNothing();
  });
});

const started = (discovery: string, attempt: number, at = START): AgentPoolEvent => ({
  type: 'DiscoveryStarted',
  data: {
    at,
    discovery,
    hostClass: 'fc430',
    attempt,
    deadline: new Date(Date.parse(at) + 15 * 60_000).toISOString(),
  },
});

describe('agents: discovery', () => {
  const failed = (reason: string, at = START): AgentPoolEvent => ({
    type: 'DiscoveryFailed',
    data: { at, discovery: 'fc430-1', reason },
  });
  const known = (n: number): AgentPoolEvent => ({
    type: 'HardwareCounted',
    data: { at: START, hostClass: 'fc430', known: n },
  });

  it('ends with the agent that it led to', () => {
    const found = { id: 'fc430-1-1', state: 'found', agent: 'a1' } as const;
    const { links } = seen('a1');
    given(started('fc430-1', 1))
      .when(look([seen('a1')], { discoveries: [found] }))
      .thenEvents({
        type: 'AgentDiscovered',
        data: { at: START, agent: 'a1', hostClass: 'fc430', links, discovery: 'fc430-1' },
      });
  });

  it('fails when the site says so, and at its deadline', () => {
    given(started('fc430-1', 1))
      .when(look([], { discoveries: [{ id: 'fc430-1-1', state: 'failed' }] }))
      .thenEvents(failed('the site could not make an agent of the host'));
    given(started('fc430-1', 1))
      .when(look([], { at: minutes(14) }))
      .thenNothing();
    given(started('fc430-1', 1))
      .when(look([], { at: minutes(15) }))
      .thenEvents(failed(`no agent appeared until ${minutes(15)}`, minutes(15)));
  });

  it('tries other hosts first, then those that failed, three times, then after an hour of rest', () => {
    const next = (at: number, ...events: AgentPoolEvent[]) =>
      nextDiscoveries(given(...events).state(), 'fc430', 2, minutes(at)).map(
        ({ discovery, attempt }) => `${discovery}/${attempt}`,
      );
    expect(next(0, known(5))).to.deep.equal(['fc430-1/1', 'fc430-2/1']);
    const once = [known(2), started('fc430-1', 1), failed('x')];
    expect(next(0, ...once)).to.deep.equal(['fc430-2/1', 'fc430-1/2']);
    const thrice = [...once, started('fc430-1', 2), failed('x'), started('fc430-1', 3), failed('x')];
    expect(next(0, ...thrice)).to.deep.equal(['fc430-2/1']);
    expect(next(60, ...thrice)).to.deep.equal(['fc430-2/1', 'fc430-1/4']);
  });

  it('records an attempt once', () =>
    given(started('fc430-1', 1))
      .when({ type: 'StartDiscovery', at: START, discovery: 'fc430-1', hostClass: 'fc430', attempt: 1 })
      .thenNothing());
});

describe('agents: target of the hot pool', () => {
  const review = (at: string): AgentPoolCommand => ({
    type: 'ReviewTarget',
    at,
    hostClass: 'fc430',
    serviceLevel: 0.99,
    leadHours: 0.25,
    floor: 10,
  });
  const target: AgentPoolEvent = {
    type: 'HotPoolTargetChanged',
    data: {
      at: START,
      hostClass: 'fc430',
      target: 7,
      minFree: 1,
      ordersPerHour: 10,
      meanSize: 1,
      meanSquare: 1,
      leadHours: 0.25,
      serviceLevel: 0.99,
    },
  };

  it('follows what is expected, and says nothing twice', () => {
    given().when(review(START)).thenEvents(target);
    given(target)
      .when(review(minutes(15)))
      .thenNothing();
  });

  it('knows since when too few are free or on their way', () => {
    const lowSince = (...events: AgentPoolEvent[]) => given(...events).state().classes['fc430']?.lowSince;
    expect(lowSince(target)).to.equal(START);
    const seven = Array.from({ length: 7 }, (_, n) => started(`fc430-${n}`, 1, minutes(n)));
    expect(lowSince(target, ...seven.slice(1))).to.equal(START);
    expect(lowSince(target, ...seven)).to.equal(undefined);
  });
});
