import { expect } from 'chai';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import { diskImage } from '../../../../src/domain/images/disk-image.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';

type DiskImageEvent = EventOf<typeof diskImage>;

const at = '2026-11-21T12:00:00.000Z';
const later = '2026-11-21T13:00:00.000Z';
const facts = { at, id: 'rhel', tenant: 't1', project: '', name: 'rhel', creator: 'someone' };
const sent: JsonObject = {
  source_type: 'SOURCE_TYPE_REGISTRY',
  source_ref: 'registry.example/rhel:9',
  architecture: ['ARCHITECTURE_AMD64'],
};
const stored: JsonObject = {
  ...sent,
  guest_os_family: 'GUEST_OS_FAMILY_LINUX',
  lifecycle: 'DISK_IMAGE_LIFECYCLE_AVAILABLE',
};
const create = (spec: JsonObject): DocumentCommand => ({
  type: 'CreateDocument',
  ...facts,
  document: { spec },
});
const revise = (spec: JsonObject, time = later): DocumentCommand => ({
  type: 'ReviseDocument',
  at: time,
  document: { spec },
});
const registered = (change: JsonObject = {}): DiskImageEvent => ({
  type: 'DiskImageRegistered',
  data: { ...facts, document: { spec: { ...stored, ...change } } },
});
const revised = (change: JsonObject): DiskImageEvent => ({
  type: 'DiskImageRevised',
  data: { at: later, document: { spec: { ...stored, ...change } } },
});
const DEPRECATED = { lifecycle: 'DISK_IMAGE_LIFECYCLE_DEPRECATED' };
const OBSOLETE = { lifecycle: 'DISK_IMAGE_LIFECYCLE_OBSOLETE' };

describe('disk images', () => {
  const { given } = specify(diskImage.decider);

  it('are Linux and available unless said otherwise', () => {
    given().when(create(sent)).thenEvents(registered());
    given()
      .when(create({ ...sent, guest_os_family: 'GUEST_OS_FAMILY_WINDOWS' }))
      .thenEvents(registered({ guest_os_family: 'GUEST_OS_FAMILY_WINDOWS' }));
  });
  it('name every field that is wrong at once', () => {
    const { decision } = given().when(create({ source_type: 7 }));
    expect((decision as { message: string }).message).to.equal(
      [
        'validation failed: validation errors:',
        ' - object.spec.source_type: must be one of SOURCE_TYPE_REGISTRY',
        ' - object.spec.source_ref: must be at least 1 characters',
        ' - object.spec.architecture: must contain at least 1 item(s)',
      ].join('\n'),
    );
  });
  it('have known values only', () => {
    const refused: [JsonObject, string][] = [
      [{ ...sent, source_type: 'SOURCE_TYPE_UNSPECIFIED' }, 'source_type: must be one of'],
      [{ source_ref: 'x', architecture: sent['architecture'] ?? null }, 'source_type: is required'],
      [{ ...sent, guest_os_family: 9 }, 'guest_os_family: must be one of'],
      [
        { ...sent, architecture: ['ARCHITECTURE_AMD64', 'ARCHITECTURE_UNSPECIFIED'] },
        'architecture[1]: must be',
      ],
      [
        { ...sent, architecture: ['ARCHITECTURE_AMD64', 'ARCHITECTURE_AMD64'] },
        'architecture: must name each',
      ],
      [{ ...sent, ...DEPRECATED }, 'lifecycle: must be one of DISK_IMAGE_LIFECYCLE_AVAILABLE'],
      [{ ...sent, lifecycle: 9 }, 'lifecycle: must be one of'],
    ];
    for (const [spec, problem] of refused) {
      const { decision } = given().when(create(spec));
      expect((decision as { message: string }).message).to.contain(`object.spec.${problem}`);
    }
    given(registered())
      .when(revise({ ...stored, lifecycle: 9 }))
      .thenRejected('VALIDATION_FAILED');
  });
  it('keep what they were made from, and change their architectures', () => {
    given(registered())
      .when(revise({ ...stored, source_ref: 'registry.example/rhel:10' }))
      .thenRejected('IMMUTABLE_FIELD', { message: "field 'spec.source_ref' is immutable" });
    const architecture = ['ARCHITECTURE_AMD64', 'ARCHITECTURE_ARM64'];
    given(registered())
      .when(revise({ ...stored, architecture }))
      .thenEvents(revised({ architecture }));
  });
  it('are stamped by the service, and forget the stamps when they are available again', () => {
    const lie = { deprecation: { deprecation_timestamp: '2020-01-01T00:00:00Z' } };
    const deprecated = { ...DEPRECATED, deprecation: { deprecation_timestamp: later } };
    given(registered())
      .when(revise({ ...stored, ...DEPRECATED, ...lie }))
      .thenEvents(revised(deprecated));
    const both = { deprecation_timestamp: at, obsolescence_timestamp: later };
    given(registered({ ...DEPRECATED, deprecation: { deprecation_timestamp: at } }))
      .when(revise({ ...stored, ...OBSOLETE }))
      .thenEvents(revised({ ...OBSOLETE, deprecation: both }));
    given(registered({ ...OBSOLETE, deprecation: both }))
      .when(revise(stored))
      .thenEvents(revised({}));
    given(registered({ ...OBSOLETE, deprecation: both }))
      .when(revise({ ...stored, ...OBSOLETE, ...lie }))
      .thenNothing();
    given(registered())
      .when(revise({ ...stored, ...lie }))
      .thenNothing();
  });
  it('show their lifecycle as state', () => {
    expect(diskImage.view(given(registered()).state())).to.include({ state: stored['lifecycle'] });
    expect(diskImage.view(given().state())).to.deep.equal({ exists: false });
    expect(diskImage.pointsAt({})).to.deep.equal([]);
  });
});
