import { expect } from 'chai';
import { newActor, type Actor, type Item } from '../../../src/app/process-runner/actor.ts';
import { createReadyRuns } from '../../../src/app/process-runner/runs.ts';

const look: Item = { kind: 'look' };
const observation: Item = { kind: 'observation', observation: {} };
const read: Item = {
  kind: 'effect-result',
  effectId: 'e',
  attempt: 1,
  outcome: { outcome: 'done', result: {} },
  read: { revision: 0, subjectRevision: 0 },
};
const actor = (key: string, ...mailbox: readonly Item[]): Actor => {
  const made = newActor(key);
  made.mailbox.push(...mailbox);
  return made;
};
const names = (ready: ReturnType<typeof createReadyRuns>): string[] => {
  const found: string[] = [];
  for (let next = ready.next(); next !== undefined; next = ready.next()) found.push(next.key);
  return found;
};

describe('runs that wait for their turn', () => {
  it('come in the order in which they came', () => {
    const ready = createReadyRuns();
    for (const key of ['a', 'b', 'c']) ready.add(actor(key, look));
    expect(ready.size).to.equal(3);
    expect(names(ready)).to.deep.equal(['a', 'b', 'c']);
    expect(ready.size).to.equal(0);
  });

  it('come later when there is only something to look at', () => {
    const ready = createReadyRuns();
    ready.add(actor('seen', observation));
    ready.add(actor('read', read));
    ready.add(actor('step', look));
    expect(names(ready)).to.deep.equal(['step', 'seen', 'read']);
  });

  it('have one turn of four all the same', () => {
    const ready = createReadyRuns();
    for (const key of ['s1', 's2']) ready.add(actor(key, observation));
    for (let i = 1; i <= 8; i += 1) ready.add(actor(`a${i}`, look));
    expect(names(ready)).to.deep.equal(['a1', 'a2', 'a3', 's1', 'a4', 'a5', 'a6', 's2', 'a7', 'a8']);
  });

  it('move up when a step comes for one that waits, and wait once only', () => {
    const ready = createReadyRuns();
    const one = actor('one', observation);
    ready.add(actor('other', observation));
    ready.add(one);
    one.mailbox.push(look);
    ready.add(one);
    one.mailbox.push(observation);
    ready.add(one);
    expect(ready.size).to.equal(2);
    expect(names(ready)).to.deep.equal(['one', 'other']);
  });
});
