import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { BadSimulationSetting, isAmong } from '../../../src/adapters/simulation/settings.ts';
import {
  SIMULATION_KEYS,
  callSettings,
  lifeSettings,
  parseSettings,
} from '../../../src/adapters/management-cluster/simulated/settings.ts';

describe('settings of a simulated hub', () => {
  it('reads key=value pairs, JSON and the well-known numbers of faults', () => {
    expect(parseSettings('controlPlane=2s, lostAnswer=1;429=1-3')).to.deep.equal({
      controlPlane: '2s',
      lostAnswer: '1',
      throttle: '1-3',
    });
    expect(parseSettings('{"accept": 50, "degraded": "2"}')).to.deep.equal({ accept: '50', degraded: '2' });
    expect(parseSettings('')).to.deep.equal({});
  });

  const refused: [text: string, part: string][] = [
    ['lostAnswers=1', 'unknown simulation key "lostAnswers"'],
    ['lostAnswer=first', 'needs which calls'],
    ['accept=fast', 'needs a duration'],
    ['stuckDeletion=never', 'needs a duration or "forever"'],
    ['failWhen=sometimes', 'needs early or late'],
    ['degraded=-1', 'needs a whole number'],
    ['accept', 'is not key=value'],
    ['{"accept": true}', 'needs a text or a number'],
    ['{"accept"', 'not valid JSON'],
  ];
  for (const [text, part] of refused) {
    it(`refuses ${text}`, () => {
      expect(() => parseSettings(text)).to.throw(BadSimulationSetting, part);
    });
  }

  it('takes an object setting before the hub one before the default, times the factor', () => {
    const life = lifeSettings({ accept: '100ms' }, { accept: '900ms', perNode: '1s', factor: '0.5' });
    expect([life.accept, life.perNode, life.operators]).to.deep.equal([50, 500, 300]);
    expect(lifeSettings({ noPhase: 'forever' }, {}).noPhase).to.equal('forever');
    expect(callSettings({ slow: '1.5s' }).slow).to.equal(1500);
  });

  it('knows which calls are meant', () => {
    const among = (calls: string): number[] => [1, 2, 3, 4, 5].filter((n) => isAmong(calls, n, 'x'));
    expect(among('')).to.deep.equal([]);
    expect(among('2')).to.deep.equal([2]);
    expect(among('1+3-4')).to.deep.equal([1, 3, 4]);
    expect(among('all')).to.deep.equal([1, 2, 3, 4, 5]);
  });

  it('decides percentages by seed and number alone', () => {
    const hits = (seed: string): number[] =>
      Array.from({ length: 1000 }, (_, n) => n).filter((n) => isAmong('20%', n, seed));
    expect(hits('a')).to.deep.equal(hits('a'));
    expect(hits('a')).not.to.deep.equal(hits('b'));
    expect(hits('a').length).to.be.within(150, 250);
  });

  it('documents every key with its default', () => {
    const readme = readFileSync(
      new URL('../../../src/adapters/management-cluster/simulated/README.md', import.meta.url),
      'utf8',
    );
    for (const [key, { default: value, meaning }] of Object.entries(SIMULATION_KEYS)) {
      const shown = value === '' ? '' : `\`${value}\``;
      expect(readme).to.include(`| \`${key}\` | ${shown}`);
      // A cell of a table ends at a bar.
      expect(readme).to.include(meaning.replaceAll('|', String.raw`\|`));
    }
  });
});
