import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { commandOf } from '../../../src/app/commands/loaded-streams.ts';
import { revisionOfVersion } from '../../../src/app/commands/past-version.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { countVersion, NO_VERSION } from '../../../src/domain/document-version.ts';
import { accounts, type AccountCommand } from '../../support/commands/fake-account.ts';
import { createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { checkAsync } from '../../support/property.ts';
import { deposit, open } from './accounts-at-work.ts';

const TYPES = {
  Begun: { begins: true },
  Changed: {},
  Noted: { changesDocument: false },
} as const;
type Type = keyof typeof TYPES;
const typeOf = (type: string) => TYPES[type as Type];

/** A stream whose appends are given by the types of their events. */
const streamOf = (appends: readonly (readonly Type[])[]) => {
  const events = appends.flatMap((types, append) =>
    types.map((type) => ({ type, metadata: { commandId: `c${append}` } })),
  );
  const recorded = events.map((event, revision) => ({ ...event, revision }) as unknown as RecordedEvent);
  const readStream = async function* (_stream: string, { from = 0 }: { from?: number } = {}) {
    yield* recorded.slice(0, from + 1).toReversed();
  };
  /** The version after each append of the last life, with the revision that the append ends at. */
  const ends: { version: number; revision: number }[] = [];
  let counted = NO_VERSION;
  recorded.forEach((event, i) => {
    const { type, revision } = event;
    const next = recorded[i + 1];
    const { commandId } = commandOf(event);
    if (typeOf(type) === TYPES.Begun) ends.length = 0;
    counted = countVersion(counted, commandId, typeOf(type));
    if (next === undefined || commandOf(next).commandId !== commandId)
      ends.push({ version: counted.version, revision });
  });
  const now = { version: counted.version, revision: recorded.length - 1 };
  return { store: { readStream }, now, ends };
};

describe('the revision of an earlier version', () => {
  const life = fc
    .array(fc.array(fc.constantFrom('Changed' as const, 'Noted' as const), { minLength: 1, maxLength: 3 }), {
      maxLength: 8,
    })
    .map((appends): readonly (readonly Type[])[] => [['Begun'], ...appends]);

  it('property: is the end of the last append of the object with that version, and of no object before it', () =>
    checkAsync(
      fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 3 }), fc.nat(10), async (lives, wanted) => {
        const { store, now, ends } = streamOf(lives.flat());
        fc.pre(wanted < now.version);
        expect(await revisionOfVersion({ store, typeOf }, 's-1', now, wanted)).to.equal(
          ends.findLast(({ version }) => version === wanted)?.revision,
        );
      }),
    ));

  it('is unknown where the store has lost the events of that time', async () => {
    const { store, now } = streamOf([['Begun'], ['Changed'], ['Changed'], ['Changed']]);
    const truncated = {
      readStream: async function* (...[stream, options]: Parameters<typeof store.readStream>) {
        for await (const event of store.readStream(stream, options)) if (event.revision >= 2) yield event;
      },
    };
    expect(await revisionOfVersion({ store: truncated, typeOf }, 's-1', now, 2)).to.equal(2);
    expect(await revisionOfVersion({ store: truncated, typeOf }, 's-1', now, 1)).to.equal(undefined);
  });
});

describe('a stream folded up to a version', () => {
  it('is what the document showed then, with all that did not change it', async () => {
    const { runner } = createTestRunner(createMemoryEventStore());
    const commands: readonly AccountCommand[] = [
      open,
      { type: 'TakeNote', text: 'silent' },
      { type: 'DepositAndNote', amount: 1, deposit: 'd' },
      deposit('e', 2),
    ];
    for (const [i, command] of commands.entries())
      await runner.execute(accounts, 'a', command, fakeContext(`c${i}`));
    const shown = async (version: number) => {
      const loaded = await runner.loadVersion(accounts, 'a', version);
      return loaded && { revision: loaded.revision, version: loaded.version, state: loaded.state };
    };
    expect(await shown(0)).to.deep.include({ revision: 1, version: 0 });
    expect(await shown(1)).to.deep.equal({
      revision: 3,
      version: 1,
      state: { status: 'open', owner: 'ann', balance: 1, deposits: ['d'] },
    });
    expect(await shown(2)).to.deep.include({ revision: 4, version: 2 });
    expect(await shown(3)).to.equal(undefined);
    expect(await shown(-1)).to.equal(undefined);
    expect(await runner.loadVersion(accounts, 'nobody', 0)).to.equal(undefined);
  });
});
