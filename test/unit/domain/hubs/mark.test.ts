import { expect } from 'chai';
import {
  decideMark,
  MARK_DURATION_MS,
  type HubMark,
  type MarkDecision,
  type SeenMark,
} from '../../../../src/domain/hubs/mark.ts';

const ours = { deploymentId: 'b', formerIds: ['a'], holder: 'here' };

const mark = (more: Partial<HubMark> = {}): HubMark => ({
  deploymentId: 'b',
  name: 'ledger',
  formerIds: ['a'],
  epoch: 7,
  nonce: 'n7',
  holder: 'there',
  renewedAt: '2026-11-21T12:00:00.000Z',
  released: false,
  ...more,
});

const seen = (more: Partial<HubMark>, watched: Partial<Omit<SeenMark, 'mark'>> = {}): SeenMark => ({
  mark: mark(more),
  known: true,
  unchangedMs: 0,
  renewals: 0,
  ...watched,
});

const expired = { unchangedMs: MARK_DURATION_MS };
const foreign = { deploymentId: 'z', name: 'other', formerIds: [] };
/** The service from whose log ours was restored, and the one that was restored from ours. */
const former = { deploymentId: 'a', formerIds: [] };
const successor = { deploymentId: 'c', formerIds: ['a', 'b'] };

const TAKE: MarkDecision = { do: 'take' };
const WAIT: MarkDecision = { do: 'wait' };
const over = (what: 'restored' | 'expired' | 'foreign'): MarkDecision => ({ do: 'take', over: what });
const away = (because: 'behind' | 'replaced' | 'copy' | 'foreign'): MarkDecision => ({
  do: 'stay-away',
  because,
});

describe('who drives a hub', () => {
  const cases: readonly (readonly [given: string, seen: SeenMark | undefined, then: MarkDecision])[] = [
    ['no mark', undefined, TAKE],
    ['our id, our directory, an epoch of our log (a restart)', seen({ holder: 'here' }), TAKE],
    ['our id, another directory, given back', seen({ released: true }), TAKE],
    ['our id, another directory, just seen', seen({}), WAIT],
    [
      'our id, another directory, renewed once (a colleague that has just lost its lease)',
      seen({}, { renewals: 1 }),
      WAIT,
    ],
    ['our id, another directory, not renewed for its duration', seen({}, expired), over('expired')],
    ['our id, another directory, renewed while we own our log', seen({}, { renewals: 2 }), away('copy')],
    ['the same, and it stopped being renewed', seen({}, { renewals: 2, ...expired }), away('copy')],
    ['our id and an epoch that our log does not know', seen({}, { known: false }), away('behind')],
    ['the same, expired', seen({}, { known: false, ...expired }), away('behind')],
    ['the same, given back', seen({ released: true }, { known: false }), away('behind')],
    [
      'the same, of our own directory (an older backup put in its place)',
      seen({ holder: 'here' }, { known: false }),
      away('behind'),
    ],
    ['a former id of ours, renewed', seen(former, { known: false, renewals: 9 }), over('restored')],
    [
      'a deployment that was restored from our log, renewed',
      seen(successor, { renewals: 9 }),
      away('replaced'),
    ],
    ['the same, expired', seen(successor, expired), away('replaced')],
    ['the same, given back', seen({ ...successor, released: true }), away('replaced')],
    ['a foreign deployment, just seen', seen(foreign), WAIT],
    ['a foreign deployment, renewed', seen(foreign, { renewals: 1 }), away('foreign')],
    ['a foreign deployment, not renewed for its duration', seen(foreign, expired), over('foreign')],
    ['a foreign deployment, given back', seen({ ...foreign, released: true }), over('foreign')],
  ];
  for (const [given, mark_, then] of cases)
    it(`given ${given}: ${then.do}${'because' in then ? `, ${then.because}` : ''}`, () => {
      expect(decideMark(ours, mark_)).to.deep.equal(then);
    });
});
