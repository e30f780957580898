import { expect } from 'chai';
import { createRig, expectDelivered, specOf, valuesOf, type Rig } from './publisher-rig.ts';

describe('the publisher', () => {
  let rig: Rig;
  beforeEach(() => {
    rig = createRig();
  });

  describe('with several topics', () => {
    const topics = ['one', 'two', 'three'];
    beforeEach(() => {
      rig = createRig({ topics });
    });

    const othersAre = async (what: string): Promise<void> => {
      const running = rig.start();
      await rig.append('thing-a', 'thing-b');
      await rig.time.pass(2_000);
      await rig.append('thing-a');
      await rig.time.pass(2_000);
      for (const topic of ['two', 'three']) {
        expect(running.topic(topic), what).to.include({ state: 'live', sent: 3 });
        await expectDelivered(rig, topic);
      }
      expect(running.topic('one').sent).to.equal(0);
      expect(running.topic('one').waitingEvents).to.equal(3);
      await running.stop();
    };

    it('one that is slow delays no other', async () => {
      rig.kafka.faults.hold('one');
      await othersAre('slow');
    });

    for (const reason of ['refused', 'full', 'unauthorized'] as const)
      it(`one that the brokers do not take (${reason}) delays no other`, async () => {
        rig.kafka.faults.refuse('one', reason);
        await othersAre(reason);
      });

    it('one that is missing delays no other, and fills at once when it is made', async () => {
      rig.kafka.deleteTopic('one');
      await othersAre('missing');
      expect(
        rig.log.lines.some(({ fields }) => JSON.stringify(fields).includes('ledgerctl kafka create-topics')),
      ).to.equal(true);
      const running = rig.start();
      // By now it is looked for only now and then.
      await rig.time.pass(300_000);
      expect(running.topic('one').lastError?.reason).to.equal('topic-missing');
      expect(await running.publisher.createTopics(new AbortController().signal)).to.deep.equal(['one']);
      await rig.time.pass(100);
      expect(running.topic('one')).to.include({ state: 'live', sent: 3 });
      await running.stop();
      await expectDelivered(rig, 'one');
    });

    it('one that is removed while it is published to fills again once it is made', async () => {
      const running = rig.start();
      await rig.append('thing-a');
      await rig.time.pass(1_000);
      rig.kafka.deleteTopic('one');
      await rig.append('thing-a');
      await rig.time.pass(1_000);
      expect(running.topic('one').lastError?.reason).to.equal('topic-missing');
      expect(running.topic('two').sent).to.equal(2);
      rig.kafka.createTopic(specOf('one'));
      await rig.time.pass(31_000);
      await running.stop();
      expect(valuesOf(rig.kafka, 'one'), 'from the beginning: what was sent is gone').to.deep.equal([
        'thing-a@0',
        'thing-a@1',
      ]);
      await expectDelivered(rig, 'two');
    });

    it('one that is made anew while a send is tried is filled from the beginning', async () => {
      for (const [streams, says] of [
        [['thing-a'], undefined],
        // A partition to which nothing was sent before tells nothing by itself.
        [['thing-other'], 'This server does not host this topic-partition'],
      ] as const) {
        rig = createRig({ topics: ['one'] });
        const running = rig.start({ topics: ['one'] });
        await rig.append('thing-a', 'thing-a', 'thing-a');
        await rig.time.pass(2_000);
        const release = rig.kafka.faults.hold('one');
        await rig.append(...streams);
        await rig.time.pass(1_000);
        rig.kafka.deleteTopic('one');
        if (says !== undefined) rig.kafka.faults.trouble(says);
        rig.kafka.createTopic(specOf('one'));
        release();
        await rig.time.pass(5_000);
        expect(running.topic('one')).to.include({ state: 'live', waitingEvents: 0 });
        const values = new Set(valuesOf(rig.kafka, 'one'));
        expect([...values].toSorted()).to.deep.equal(
          [
            'thing-a@0',
            'thing-a@1',
            'thing-a@2',
            says === undefined ? 'thing-a@3' : 'thing-other@0',
          ].toSorted(),
        );
        await running.stop();
      }
    });

    it('one that is made anew while it has nothing to tell is filled from the beginning', async () => {
      rig = createRig({ topics: ['one'] });
      const running = rig.start({ topics: ['one'] });
      await rig.append('thing-a', 'thing-a');
      // The connection was given back.
      await rig.time.pass(62_000);
      rig.kafka.deleteTopic('one');
      rig.kafka.createTopic(specOf('one'));
      await rig.append('thing-other');
      await rig.time.pass(5_000);
      await expectDelivered(rig, 'one');
      expect(running.topic('one')).to.include({ state: 'live', waitingEvents: 0 });
      await running.stop();
    });

    it('one that is found empty, since it was made anew or these are other brokers, is filled from the beginning', async () => {
      const first = rig.start();
      await rig.append('thing-a', 'thing-b');
      await rig.time.pass(2_000);
      await first.stop();
      rig.kafka.deleteTopic('one');
      rig.kafka.createTopic(specOf('one'));
      await rig.append('thing-a');
      const second = rig.start();
      await rig.time.pass(5_000);
      expect(second.topic('one')).to.include({ state: 'live', waitingEvents: 0 });
      await expectDelivered(rig, 'one');
      expect(second.topic('two').sent, 'the others go on where they were').to.equal(1);
      await second.stop();
      // And the next one goes on there, too.
      await rig.append('thing-b');
      const third = rig.start();
      await rig.time.pass(2_000);
      expect(third.topic('one').sent).to.equal(1);
      await third.stop();
    });
  });
});
