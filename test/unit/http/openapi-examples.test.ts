import { expect } from 'chai';
import { plainExamples } from '../../../src/http/openapi/examples.ts';
import { gadget } from '../../support/commands/fake-gadget.ts';

describe('examples of kinds that no file speaks of', () => {
  it('make an object with what it must hold, and change it', () => {
    const holder = { ...gadget, example: { spec: { codes: ['a'] } } };
    expect(plainExamples(holder)).to.deep.equal([
      {
        id: 'plain',
        operationId: 'private_Gadgets_Create',
        summary: 'Plain gadget',
        body: { spec: { codes: ['a'] }, metadata: { name: 'example-private' } },
        made: 'gadget-private',
      },
      {
        id: 'described',
        operationId: 'private_Gadgets_Update',
        summary: 'Change one field; the others stay',
        parameters: { id: 'gadget-private' },
        body: { metadata: { description: 'For the first tests' } },
      },
    ]);
  });
  it('are of the surfaces that make such objects', () => {
    const methods = { public: ['List', 'Create'], private: ['List'] } as const;
    expect(plainExamples({ ...gadget, methods }).map(({ operationId }) => operationId)).to.deep.equal([
      'public_Gadgets_Create',
      'public_Gadgets_Update',
    ]);
  });
});
