import { expect } from 'chai';
import {
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type TestService,
  type TestServiceOptions,
} from '../../support/http/service.ts';

export const CLUSTERS = `${PUBLIC}/clusters`;
export const SMALL = { template: { id: 'osac.templates.small' } };

export type Ordering = {
  readonly service: TestService;
  readonly admin: Caller;
  /** Of tenant t1. */
  readonly user: Caller;
  /** Of tenant t2. */
  readonly other: Caller;
  /** A name that no cluster has. */
  readonly name: () => string;
  /** Orders a cluster of tenant t1; what the metadata and the spec hold can be given. */
  readonly order: (
    more?: object,
    spec?: object,
  ) => Promise<{ readonly id: string; readonly name: string; readonly json: Json }>;
};

/** A service with the catalogue of the specs, and who orders clusters from it. */
export const startOrdering = async (options: TestServiceOptions = {}): Promise<Ordering> => {
  const service = await startTestService(options);
  const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
  const user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  const other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
  await seedCatalogue(admin);
  let serial = 0;
  const name = (): string => `c-${(serial += 1)}`;
  return {
    service,
    admin,
    user,
    other,
    name,
    order: async (more = {}, spec = SMALL) => {
      const reply = await user('POST', CLUSTERS, { metadata: { name: name(), ...more }, spec });
      expect(reply.status, reply.text).to.equal(200);
      return { id: textAt(reply.json, 'id'), name: textAt(reply.json, 'metadata', 'name'), json: reply.json };
    },
  };
};
