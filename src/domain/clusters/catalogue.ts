import type { CheckValue } from '../catalog/field-governance.ts';
import type { DocumentFacts } from '../catalog/document.ts';
import type { Reference } from '../references.ts';

/** What an order looks up, as it is now. */
export type CatalogueObject = Pick<DocumentFacts, 'id' | 'name' | 'tenant' | 'document' | 'secrets'> & {
  /** Revision of its stream: recorded with the order. */
  readonly revision: number;
  /** Its deletion was requested: nothing new may use it. */
  readonly deleting: boolean;
};

/** An external IP pool and the hub that it is on. */
export type AddressPool = {
  readonly pool: { readonly id: string; readonly name: string };
  readonly hub: string;
};

type LookUp = (reference: Reference) => CatalogueObject | undefined;

/** Objects that the caller may see; undefined when there is none. */
export type Catalogue = {
  readonly template: LookUp;
  readonly item: LookUp;
  readonly version: LookUp;
  readonly defaultVersion: () => CatalogueObject | undefined;
  readonly hostType: LookUp;
  /** Of the order's own tenant and project. */
  readonly secret: LookUp;
  readonly subnet: LookUp;
  readonly securityGroup: LookUp;
  /** What the order's tenant has by default, if it has it. */
  readonly defaultNetwork: () =>
    | { readonly subnet: CatalogueObject; readonly securityGroup?: CatalogueObject }
    | undefined;
  /** Pools that can give a cluster its external IPs, the one with most free addresses first. */
  readonly addressPools: () => readonly AddressPool[];
  /** Values against the schemas of catalogue items. */
  readonly misfit: CheckValue;
};
