import { expect } from 'chai';
import { kinds } from '../../../../src/domain/kinds.ts';
import { allows, PRIVATE_RIGHTS, RIGHTS, type AnyMethod } from '../../../../src/domain/tenancy/rights.ts';

describe('the table of rights, as data', () => {
  const READING =
    'BareMetalInstances LG; Clusters LG GetTimeline; ComputeInstances LG; DiskImages LG; Subnets LG; VirtualNetworks LG; ' +
    'SecurityGroups LG; ExternalIPs LG; ExternalIPAttachments LG; NATGateways LG; ClusterCatalogItems LG; ' +
    'ComputeInstanceCatalogItems LG; BareMetalInstanceCatalogItems LG; ClusterTemplates LG; ComputeInstanceTemplates LG; ' +
    'BareMetalInstanceTemplates LG; InstanceTypes LG; BareMetalInstanceTypes LG; ClusterVersions LG; HostTypes LG; ' +
    'ExternalIPPools LG; Roles LG; RoleBindings LG; Projects L; ProjectMemberships L; Events Watch';
  const WHOLE_TENANT = `${READING}; IdentityProviders LG; Users LG; Projects G; ProjectMemberships G`;
  /** Read off the sheet once more, so that a change of the table does not pass unseen. */
  const SHEET: Readonly<Record<string, string>> = {
    client:
      'BareMetalInstances LGCUD; Clusters LGCUD GetKubeconfig GetPassword GetTimeline; ComputeInstances LGCUD; DiskImages LGCUD; ' +
      'Subnets LGCUD; VirtualNetworks LGCUD; SecurityGroups LGCUD; ExternalIPs LGCUD; ExternalIPAttachments LGCUD; ' +
      'NATGateways LGCUD; Secrets LGCUD; ClusterCatalogItems LG; ComputeInstanceCatalogItems LG; ' +
      'BareMetalInstanceCatalogItems LG; ClusterTemplates LG; ComputeInstanceTemplates LG; BareMetalInstanceTemplates LG; ' +
      'InstanceTypes LG; BareMetalInstanceTypes LG; ClusterVersions LG; HostTypes LG; ExternalIPPools LG; Roles LG; ' +
      'RoleBindings LG; Projects L; ProjectMemberships L; ConsoleSessions C; Events Watch',
    'tenant-admin':
      'ClusterCatalogItems LGCUD; ComputeInstanceCatalogItems LGCUD; BareMetalInstanceCatalogItems LGCUD; ' +
      'IdentityProviders LGCUD; Users LGCUD; Projects LGCUD; ProjectMemberships LGCUD; RoleBindings LGCUD; Roles LG',
    'tenant-idp-manager': 'IdentityProviders LGCUD; Users LG; Roles LG; RoleBindings LGCUD',
    'project-viewer': 'Projects G',
    'project-manager':
      'Projects GUD; ProjectMemberships GCUD; BareMetalInstances LGCUD; Clusters LGCUD GetKubeconfig GetPassword; ' +
      'ComputeInstances LGCUD; DiskImages LGCUD; Subnets LGCUD; VirtualNetworks LGCUD; SecurityGroups LGCUD; ' +
      'ExternalIPs LGCUD; ExternalIPAttachments LGCUD; NATGateways LGCUD; Secrets LGCUD; ConsoleSessions C',
    'project-member': READING,
    'tenant-reader': WHOLE_TENANT,
    auditor: WHOLE_TENANT,
    'csi-driver': '',
  };
  const LETTERS: Readonly<Record<string, AnyMethod>> = {
    L: 'List',
    G: 'Get',
    C: 'Create',
    U: 'Update',
    D: 'Delete',
  };
  const listed = (role: string): Set<string> =>
    new Set(
      (SHEET[role] ?? '').split('; ').flatMap((entry) => {
        const [service = '', ...words] = entry.split(' ').filter((word) => word !== '');
        return words.flatMap((word) =>
          (/^[LGCUD]+$/.test(word) ? word.split('').map((letter) => LETTERS[letter]) : [word]).map(
            (method) => `${service}/${method}`,
          ),
        );
      }),
    );
  const inherits = ['tenant-admin', 'tenant-idp-manager'];
  /** Kinds that OSAC does not have say for themselves who uses them. */
  const isOurs = (service: string): boolean =>
    !Object.values(SHEET).some((entries) =>
      entries.split('; ').some((entry) => entry.startsWith(`${service} `)),
    ) && kinds.some((kind) => kind.service === service && kind.rights !== undefined);

  /** Timelines are our addition; the sheet speaks of those of clusters. */
  const isOurTimeline = (service: string, method: string): boolean =>
    method === 'GetTimeline' && service !== 'Clusters';

  it('gives the timelines of external IPs to whom it gives those of clusters', () => {
    for (const [role, { ExternalIPs = [], Clusters = [] }] of Object.entries(RIGHTS))
      expect(ExternalIPs.includes('GetTimeline'), role).to.equal(Clusters.includes('GetTimeline'));
  });

  it('has no role that the sheet does not know', () => {
    expect(Object.keys(RIGHTS)).to.have.members(Object.keys(SHEET));
    expect(Object.keys(PRIVATE_RIGHTS)).to.have.members(Object.keys(SHEET));
  });

  for (const role of Object.keys(SHEET))
    it(`gives ${role} exactly what the sheet lists`, () => {
      const wanted = new Set([...listed(role), ...(inherits.includes(role) ? listed('client') : [])]);
      const given = Object.entries(RIGHTS[role as keyof typeof RIGHTS]).flatMap(([service, methods]) =>
        isOurs(service)
          ? []
          : methods
              .filter((method) => !isOurTimeline(service, method))
              .map((method) => `${service}/${method}`),
      );
      expect(given.toSorted()).to.deep.equal([...wanted].toSorted());
    });

  it('gives the CSI driver volumes on the private surface, but for their update, and nobody else anything there', () => {
    expect(PRIVATE_RIGHTS['csi-driver']).to.deep.equal({ Volumes: ['Create', 'Get', 'Delete', 'List'] });
    for (const [role, rights] of Object.entries(PRIVATE_RIGHTS))
      if (role !== 'csi-driver') expect(rights, role).to.deep.equal({});
  });

  it('is no map of what every object has', () => {
    for (const service of ['constructor', '__proto__', 'toString'])
      expect(allows(['client', 'tenant-admin'], service, 'Get')).to.equal(false);
  });

  it('gives admins everything on both surfaces', () => {
    for (const surface of ['public', 'private'] as const)
      expect(allows(['client', 'admin'], 'Hubs', 'Delete', surface)).to.equal(true);
  });

  it('keeps the surfaces apart', () => {
    expect(allows(['client'], 'Clusters', 'Create')).to.equal(true);
    expect(allows(['client'], 'Clusters', 'Create', 'private')).to.equal(false);
    expect(allows(['csi-driver'], 'Volumes', 'Create', 'private')).to.equal(true);
    expect(allows(['csi-driver'], 'Volumes', 'Create')).to.equal(false);
    expect(allows([], 'Clusters', 'Get')).to.equal(false);
  });
});
