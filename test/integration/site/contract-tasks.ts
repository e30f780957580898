import { expect } from 'chai';
import type { Site, TaskResult } from '../../../src/app/site/ports.ts';
import { callBy, failure, owner, untilSeen, type OpenSite, type SiteUnderTest } from './contract-kit.ts';

const TASK = { name: 'certificates', phase: 'post-install', cluster: 'c1', hub: 'sim-east-1' } as const;

/** Suite of the port `Tasks`. */
export const describeTasksContract = (name: string, open: OpenSite): void => {
  describe(`${name}: tasks`, () => {
    let under: SiteUnderTest;
    let site: Site;
    beforeEach(async () => {
      under = await open();
      site = under.site;
    });
    afterEach(() => under.close());

    const run = (effectId: string): Promise<TaskResult> =>
      site.tasks.run(TASK, owner('order-a'), callBy({ effectId }));
    const ended = (effectId: string): Promise<TaskResult> =>
      untilSeen(
        () => run(effectId),
        ({ state }) => state !== 'running',
        under.patienceMs,
      );

    it('end with evidence, which an effect is told again and again', async () => {
      const first = await ended('e1');
      expect(first.state).to.equal('passed');
      expect(await run('e1')).to.deep.equal(first);
    });

    it('are repeated for another effect', async () => {
      const first = await ended('e1');
      const second = await ended('e2');
      expect(second.state).to.equal('passed');
      expect(second).not.to.deep.equal(first);
    });

    it('are not started twice after a lost answer', async () => {
      await under.misbehave.loseNextAnswer('tasks.run');
      expect((await failure(run('e1'))).kind).to.equal('unknown-outcome');
      await ended('e1');
      const again = await ended('e1');
      expect(again).to.have.nested.property('evidence.run', 1);
    });

    it('are not started where nobody answers', async () => {
      await under.misbehave.refuseConnections();
      expect((await failure(run('e1'))).kind).to.equal('unavailable');
    });
  });
};
