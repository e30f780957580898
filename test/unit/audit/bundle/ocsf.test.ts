import { Ajv } from 'ajv';
import { expect } from 'chai';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ocsfOf } from '../../../../src/app/audit/bundle/ocsf.ts';
import { leafOf } from '../../../../src/app/audit/merkle/leaf.ts';
import { eventSamples } from '../../../support/domain/event-samples.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';

/**
 * Golden files are changed by hand: nothing here writes what it is compared with. What the class demands (OCSF 1.6.0,
 * API Activity) is held against them by a schema of its own, and what each says by `MEANINGS`.
 */
const FOLDER = join(import.meta.dirname, '../../../../fixtures/audit/ocsf');

const SUBJECT = '0193a1b2-0000-5000-8000-000000000001';
const ENCRYPTED = { alg: 'A256GCM', keyId: `${SUBJECT}.1`, nonce: 'bm9uY2U', ct: 'Y3Q', tag: 'dGFn' };

const METADATA = {
  tenant: 'acme',
  project: 'p1',
  actor: {
    subjectId: SUBJECT,
    roles: ['tenant-admin'],
    authMethod: 'jwt',
    tokenIdHash: '5e88',
    via: 'http',
    personal: ENCRYPTED,
  },
  command: 'OrderCluster',
  commandId: '0193a1b2-0000-7000-8000-000000000002',
  requestHash: '9f2c',
  correlationId: '0193a1b2-0000-7000-8000-000000000003',
  causationId: '0193a1b2-0000-7000-8000-000000000002',
  ticket: 'CHG-4711',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  occurredAt: '2026-11-21T12:00:00.000Z',
  schemaVersion: 1,
  instance: 'ledger-0',
  source: ENCRYPTED,
};
const ORDERED = {
  stream: 'cluster-0193a1b2-0000-7000-8000-000000000004',
  revision: 0,
  id: '0193a1b2-0000-5000-8000-000000000005',
  type: 'ClusterOrdered',
  data: { spec: { template: { name: 'ocp-small' } } } as JsonObject,
  metadata: METADATA as unknown as JsonObject,
  position: '0000000000000017',
  recordedAt: '2026-11-21T12:00:00.012Z',
};
const REVEALED = {
  '/metadata/actor/personal': '{"userName":"alice","email":"alice@acme.example"}',
  '/metadata/source': '{"ip":"192.0.2.7","userAgent":"osac/1.0"}',
};
const SYSTEM = {
  ...METADATA,
  actor: { subjectId: 'system', roles: [], authMethod: 'internal', via: 'workflow:order' },
};
const REFUSED = {
  ...ORDERED,
  stream: 'refusal-acme.2026-11-21',
  revision: 7,
  type: 'RequestRefused',
  data: {
    at: '2026-11-21T12:00:00.000Z',
    subjectId: SUBJECT,
    outcome: 'denied',
    code: 'PERMISSION_DENIED',
    command: 'osac.public.v1.Hubs/List',
    commandId: '0193a1b2-0000-7000-8000-000000000002',
    kind: 'hub',
    resourceId: 'hub-1',
    message: ENCRYPTED,
  } as JsonObject,
};

const CASES: {
  readonly [name: string]: readonly [event: typeof ORDERED, revealed?: { [path: string]: string }];
} = {
  'created-by-a-person': [ORDERED, REVEALED],
  'created-by-somebody-erased': [ORDERED],
  'created-on-behalf-of-a-person': [
    {
      ...ORDERED,
      metadata: {
        ...METADATA,
        actor: { ...METADATA.actor, onBehalfOf: '0193a1b2-0000-5000-8000-000000000009' },
      } as never,
    },
    { '/metadata/actor/personal': '{"userName":"csp-portal"}' },
  ],
  'created-by-whom-another-issuer-named': [
    {
      ...ORDERED,
      metadata: {
        ...METADATA,
        actor: {
          ...METADATA.actor,
          onBehalfOf: '0193a1b2-0000-5000-8000-000000000009',
          vouchedBy: 'https://sso.example/realms/osac',
        },
      } as never,
    },
    { '/metadata/actor/personal': '{"userName":"csp-portal","issuer":"https://other.example"}' },
  ],
  'changed-by-a-workflow': [
    {
      ...ORDERED,
      revision: 4,
      type: 'ClusterBecameReady',
      metadata: { ...SYSTEM, command: 'ReportReady' } as JsonObject,
    },
  ],
  'updated-by-a-person': [
    {
      ...ORDERED,
      revision: 3,
      type: 'NodeSetResized',
      metadata: { ...METADATA, command: 'ResizeNodeSet' } as never,
    },
    REVEALED,
  ],
  'deleted-by-a-person': [
    {
      ...ORDERED,
      revision: 9,
      type: 'ClusterDeletionRequested',
      metadata: { ...METADATA, command: 'DeleteCluster' } as never,
    },
  ],
  'refused-to-a-stranger': [
    {
      ...REFUSED,
      data: {
        at: '2026-11-21T12:00:00.000Z',
        subjectId: '',
        outcome: 'unauthenticated',
        code: 'UNAUTHENTICATED',
        error: 'UNAUTHENTICATED',
        command: 'osac.public.v1.Hubs/List',
        told: 'token expired: fetch a new one',
      },
      metadata: {
        ...METADATA,
        tenant: '',
        actor: { subjectId: '', roles: [], authMethod: 'anonymous', via: 'http' },
        source: undefined,
      } as never,
    },
  ],
  'refused-for-lack-of-rights': [REFUSED, { ...REVEALED, '/data/message': 'you may not list hubs' }],
  'refused-by-a-rule': [
    {
      ...REFUSED,
      data: {
        ...REFUSED.data,
        outcome: 'rejected',
        code: 'NAME_TAKEN',
        command: 'OrderCluster',
        kind: 'cluster',
      },
    },
  ],
  'refused-on-a-surface-of-its-own': [
    {
      ...REFUSED,
      data: {
        ...REFUSED.data,
        command: 'DELETE /audit.v1/exports/{id}',
        kind: 'auditExport',
        resourceId: '0193a1b2-0000-7000-8000-000000000007',
      },
    },
  ],
  'erased-by-an-admin': [
    {
      ...ORDERED,
      stream: 'retention-deployment',
      type: 'ErasureBegun',
      data: { erasureId: 'e-1', subjectId: SUBJECT },
      metadata: { ...METADATA, command: 'BeginErasure' } as never,
    },
  ],
  'refused-without-a-token': [
    {
      ...REFUSED,
      stream: 'refusal-_.2026-11-21',
      data: {
        at: '2026-11-21T12:00:00.000Z',
        subjectId: '',
        outcome: 'unauthenticated',
        code: 'UNAUTHENTICATED',
        command: 'POST /audit.v1/exports',
      },
      metadata: { tenant: '', occurredAt: '2026-11-21T12:00:00.000Z', schemaVersion: 1 },
    },
  ],
  'ordered-with-hidden-fields': [
    {
      ...ORDERED,
      data: { ...ORDERED.data, pullSecret: 'p' },
      metadata: {
        ...METADATA,
        hidden: { paths: ['/data/pullSecret'], salt: '00112233445566778899aabbccddeeff' },
      } as JsonObject,
    },
    REVEALED,
  ],
  'read-by-an-auditor': [
    {
      ...ORDERED,
      stream: 'auditAccess-acme.2026-11-21',
      type: 'AuditRead',
      data: { what: 'events', query: { type: 'ClusterOrdered' } },
    },
  ],
};

/** What a reader of OCSF makes of each case: activity, outcome and severity by OCSF's names, and who acted. */
const MEANINGS: { readonly [name: string]: readonly [activity: string, outcome: string, who: string] } = {
  'created-by-a-person': ['Create', 'Success, Informational', 'alice'],
  'created-by-somebody-erased': ['Create', 'Success, Informational', SUBJECT],
  'created-on-behalf-of-a-person': ['Create', 'Success, Informational', 'csp-portal'],
  'created-by-whom-another-issuer-named': ['Create', 'Success, Informational', 'csp-portal'],
  'changed-by-a-workflow': ['Other', 'Success, Informational', 'workflow:order'],
  'updated-by-a-person': ['Update', 'Success, Informational', 'alice'],
  'deleted-by-a-person': ['Delete', 'Success, Informational', SUBJECT],
  'refused-to-a-stranger': ['Read', 'Failure, Low', 'unknown'],
  'refused-for-lack-of-rights': ['Read', 'Failure, Low', 'alice'],
  'refused-by-a-rule': ['Create', 'Failure, Informational', SUBJECT],
  'refused-on-a-surface-of-its-own': ['Delete', 'Failure, Low', SUBJECT],
  'erased-by-an-admin': ['Delete', 'Success, Informational', SUBJECT],
  'refused-without-a-token': ['Create', 'Failure, Low', 'unknown'],
  'ordered-with-hidden-fields': ['Create', 'Success, Informational', 'alice'],
  'read-by-an-auditor': ['Read', 'Success, Informational', SUBJECT],
};
const ACTIVITIES = ['', 'Create', 'Read', 'Update', 'Delete'];
const SEVERITIES = ['', 'Informational', 'Low'];
const OUTCOMES = ['', 'Success', 'Failure'];

const recordOf = (name: string): JsonObject => {
  const [event, revealed] = CASES[name] ?? [];
  if (event === undefined) throw new Error(`no case ${name}`);
  return ocsfOf({
    leaf: leafOf(event),
    event,
    productVersion: '1.2.3',
    ...(revealed === undefined ? {} : { revealed }),
  });
};

describe('OCSF API Activity', () => {
  const schema = JSON.parse(
    readFileSync(join(FOLDER, 'api-activity-1.6.0.schema.json'), 'utf8'),
  ) as JsonObject;
  const valid = new Ajv({ allErrors: true, strictRequired: false }).compile(schema);

  for (const name of Object.keys(CASES))
    it(name, () => {
      const record = recordOf(name);
      const file = join(FOLDER, `${name}.json`);
      expect(record).to.deep.equal(JSON.parse(readFileSync(file, 'utf8')));
      valid(record);
      expect(valid.errors ?? []).to.deep.equal([]);
    });

  it('says what happened by the numbers of OCSF, and when', () => {
    const meanings = Object.keys(CASES).map((name) => {
      const record = recordOf(name);
      const number = (key: string): number => Number(record[key]);
      const activity = number('activity_id');
      expect(number('type_uid'), name).to.equal(number('class_uid') * 100 + activity);
      expect(new Date(number('time')).toISOString(), name).to.equal('2026-11-21T12:00:00.000Z');
      const actor = record['actor'] as {
        readonly user?: { readonly uid: string; readonly name?: string };
        readonly app_uid?: string;
      };
      return [
        name,
        [
          activity === 99 ? 'Other' : ACTIVITIES[activity],
          `${OUTCOMES[number('status_id')]}, ${SEVERITIES[number('severity_id')]}`,
          actor.user?.name ?? actor.user?.uid ?? actor.app_uid,
        ],
      ];
    });
    expect(Object.fromEntries(meanings)).to.deep.equal(MEANINGS);
    const files = readdirSync(FOLDER).filter((file) => !file.endsWith('.schema.json'));
    expect(files.toSorted()).to.deep.equal(
      Object.keys(CASES)
        .map((name) => `${name}.json`)
        .toSorted(),
    );
  });

  const activityOf = (event: object): unknown => {
    const whole = { ...REFUSED, ...event } as typeof ORDERED;
    return ocsfOf({ leaf: leafOf(whole), event: whole, productVersion: '1' })['activity_name'];
  };

  it('says of a refused call what it wanted to do: by its verb, or by what it does with a thing that is there', () => {
    const wanted = {
      'GET /audit.v1/holds': 'Read',
      'HEAD /audit.v1/exports/{id}/file': 'Read',
      'POST /audit.v1/holds': 'Create',
      'DELETE /audit.v1/holds/{id}': 'Delete',
      'PUT /audit.v1/exports/{id}': 'Update',
      'PATCH /audit.v1/exports/{id}': 'Update',
      'POST /ledger.v1/orders/{id}/retry': 'Update',
      'POST /ledger.v1/orders/{id}/abort': 'Update',
      SkipStep: 'Update',
      'POST /ledger.v1/orders/{id}/cancel': 'Delete',
      'POST /ledger.v1/hubs/check': 'Create',
      'POST /ledger.v1/kafka/topics/{topic}/parked/{stream}/retry': 'Update',
      'POST /ledger.v1/kafka/topics/{topic}/replays': 'Create',
      'OPTIONS /audit.v1/holds': 'RequestRefused',
      '/osac.private.v1.Hubs/Delete': 'Delete',
      DeleteCluster: 'Delete',
      BeginErasure: 'Delete',
      DiscardAuditExport: 'Delete',
    };
    for (const [command, activity] of Object.entries(wanted))
      expect(activityOf({ data: { ...REFUSED.data, command } }), command).to.equal(activity);
  });

  it('goes by the name where the place in its stream does not say it', () => {
    for (const revision of [0, 5])
      for (const [type, activity] of [
        ['LegalHoldPlaced', 'Create'],
        ['LegalHoldReleased', 'Delete'],
        ['ErasureBegun', 'Delete'],
        ['SubjectKeyDestroyed', 'Delete'],
        ['AuditExportDiscarded', 'Delete'],
      ])
        expect(activityOf({ stream: 'retention-deployment', revision, type }), type).to.equal(activity);
  });

  it('holds every sample of an event that there is', () => {
    for (const { type, data } of eventSamples) {
      const event = { ...ORDERED, type, data };
      valid(ocsfOf({ leaf: leafOf(event), event, productVersion: '1' }));
      expect(valid.errors ?? [], type).to.deep.equal([]);
    }
  });

  it('is the same for the same event, and never fails for one that says nothing', () => {
    expect(recordOf('created-by-a-person')).to.deep.equal(recordOf('created-by-a-person'));
    const bare = { ...ORDERED, data: {}, metadata: {}, recordedAt: '' };
    valid(
      ocsfOf({
        leaf: leafOf(bare),
        event: bare,
        productVersion: '1',
        revealed: { '/metadata/source': 'no JSON' },
      }),
    );
    expect(valid.errors ?? []).to.deep.equal([]);
  });
});
