import { expect } from 'chai';
import { appliedTo } from '../../../src/projections/applied-to.ts';
import { createTestLog, poisoned, written } from '../../support/projections/log.ts';
import { openNotes, settle } from '../../support/projections/open-notes.ts';

describe('what a view holds of one stream', () => {
  it('is everything up to its position, and nothing is known of a parked one', async () => {
    const log = createTestLog();
    let broken = true;
    const models = await openNotes(log, { poison: () => broken });
    await log.append('note-a', written('a'));
    await log.append('note-a', poisoned());
    const last = await log.append('note-b', written('b'));
    await settle(models, log);
    expect(appliedTo(models, 'resources', 'note-b')).to.equal(last);
    expect(appliedTo(models, 'resources', 'note-a')).to.equal(undefined);
    expect(appliedTo(models, 'elsewhere', 'note-b')).to.equal(undefined);
    broken = false;
    expect(await models.retryParked('resources', 'note-a')).to.equal(true);
    expect(appliedTo(models, 'resources', 'note-a')).to.equal(last);
    await models.close();
  });
});
