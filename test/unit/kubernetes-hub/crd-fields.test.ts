import { expect } from 'chai';
import {
  missingFields,
  schemaInOpenApi,
} from '../../../src/adapters/management-cluster/kubernetes/crd-fields.ts';

const text = { type: 'string' };
const schema = {
  type: 'object',
  'x-kubernetes-group-version-kind': [
    { group: 'osac.openshift.io', kind: 'ClusterOrder', version: 'v1alpha1' },
  ],
  properties: {
    spec: { allOf: [{ $ref: '#/components/schemas/Spec' }] },
    status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
};
const spec = {
  type: 'object',
  properties: {
    templateID: text,
    templateParameters: text,
    nodeRequests: {
      type: 'array',
      items: { type: 'object', properties: { resourceClass: text, numberOfNodes: { type: 'integer' } } },
    },
    pullSecret: text,
    sshPublicKey: text,
    releaseImage: text,
    network: { type: 'object', properties: { podCIDR: text } },
  },
};
const documentOf = (...schemas: object[]) =>
  ({
    components: { schemas: { Spec: spec, ...Object.fromEntries(schemas.entries()) } },
  }) as unknown as Parameters<typeof schemaInOpenApi>[0];

describe('fields of a CRD', () => {
  it('that are not there are named, through references and lists', () => {
    const document = documentOf(schema);
    const found = schemaInOpenApi(document);
    expect(found).to.not.equal(undefined);
    expect(missingFields(found ?? {}, document)).to.deep.equal(['spec.network.serviceCIDR']);
  });

  it('of a kind that is not in the document are unknown, and a circle of references ends', () => {
    expect(schemaInOpenApi(documentOf())).to.equal(undefined);
    const circle = { $ref: '#/components/schemas/0' };
    expect(missingFields(circle, documentOf(circle)).length).to.be.greaterThan(0);
  });
});
