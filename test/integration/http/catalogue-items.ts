import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

export const ITEMS = 'cluster_catalog_items';
export const SMALL = { id: 'osac.templates.small' };

export type CatalogueItems = {
  readonly service: TestService;
  readonly admin: Caller;
  /** Of tenant t1. */
  readonly user: Caller;
  /** Administrator of tenant t1. */
  readonly tenantAdmin: Caller;
  /** A name that no item has. */
  readonly name: () => string;
  /** Asks for an item of the small template; what differs can be given. */
  readonly item: (more?: object) => Promise<Reply>;
  /** The same, of which it is known that it is taken. */
  readonly made: (more?: object) => Promise<{ readonly id: string; readonly name: string }>;
  /** Asks for a cluster of tenant t1. */
  readonly order: (spec: object) => Promise<Reply>;
};

/** A service with the catalogue of the specs, and who keeps items in it and orders from them. */
export const startCatalogueItems = async (): Promise<CatalogueItems> => {
  const service = await startTestService();
  const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
  await seedCatalogue(admin);
  const user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  const tenantAdmin = callerOf(
    service,
    await service.token({ user: 'tess', tenants: ['t1'], roles: ['tenant-admin'] }),
  );
  let serial = 0;

  const name = (): string => `item-${(serial += 1)}`;
  const item = async (more: object = {}): Promise<Reply> =>
    admin('POST', `${PRIVATE}/${ITEMS}`, {
      metadata: { name: name() },
      title: 'Small item',
      template: SMALL,
      published: true,
      ...more,
    });
  const made = async (more: object = {}): Promise<{ id: string; name: string }> => {
    const reply = await item(more);
    expect(reply.status, reply.text).to.equal(200);
    return { id: textAt(reply.json, 'id'), name: textAt(reply.json, 'metadata', 'name') };
  };
  const order = (spec: object): Promise<Reply> =>
    user('POST', `${PUBLIC}/clusters`, { metadata: { name: `c-${(serial += 1)}` }, spec });
  return { service, admin, user, tenantAdmin, name, item, made, order };
};

/** That a call was refused with a status and a text. */
export const refused = (reply: Reply, status: number, message: string | RegExp): void => {
  expect(reply.status, reply.text).to.equal(status);
  if (typeof message === 'string') expect(reply.json['message']).to.contain(message);
  else expect(reply.json['message']).to.match(message);
};
