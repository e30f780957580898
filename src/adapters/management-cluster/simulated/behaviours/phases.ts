import {
  manifestFaults,
  patchFaults,
  type Fault,
  type OwnedObject,
} from '../../../../domain/hubs/hub-object.ts';
import type { Condition } from '../../../../domain/hubs/hub-codecs.ts';
import { sameJson } from '../../../../domain/json-tools.ts';
import { createAgenda } from '../agenda.ts';
import type { Labels } from '../rack.ts';
import { REACTION_MS, type ObjectRecord } from '../record.ts';
import { isAmong } from '../../../simulation/settings.ts';
import type { LifeSettings } from '../settings.ts';
import { createStoredObject, type OnVersion } from '../stored-object.ts';
import { invalidObject, type Behaviour, type Cause, type Living } from './behaviour.ts';

type Status = { readonly conditions: readonly Condition[]; readonly [field: string]: unknown };

/** Settings that are lengths of time. */
export type DurationKey = 'accept' | 'finish' | 'operators' | 'namespace';

/** What an object was when a phase begins. */
export type Before = {
  readonly now: number;
  readonly status: { readonly conditions: readonly Condition[]; readonly [field: string]: unknown };
  /** The spec that it was last made ready with. */
  readonly spec?: object;
};

/** A kind whose objects go through phases, the same ones again after each change of their spec. */
export type PhaseTable = {
  readonly kind: OwnedObject;
  readonly finalizer: string;
  /** Each begins so long after the one before. `failInstall` numbers tries that end in `failed` instead of the last. */
  readonly phases: readonly {
    readonly after: DurationKey;
    readonly status: (record: ObjectRecord, before: Before) => object;
  }[];
  /** It needs a host with these labels, and shows this while it has none. */
  readonly hosts?: {
    readonly wanted: (spec: object) => Labels;
    readonly lacking: (before: Before) => object;
  };
  /** It gets an address in each of these subnets. */
  readonly subnets?: (spec: object) => readonly string[];
  readonly failed: (text: string) => object;
  readonly deleting: object;
  /** Fields of the spec that the API server lets nobody change. */
  readonly immutable: readonly string[];
};

/** The behaviour that a table declares. Durations and seeded faults are the settings of the object (README.md). */
export const phaseBehaviour = (table: PhaseTable): Behaviour => {
  const { kind, immutable } = table;
  const refuse = (name: string, faults: readonly Fault[]): void => {
    const causes = faults.map((fault): Cause => ({ ...fault, reason: 'FieldValueInvalid' }));
    if (causes.length > 0) throw invalidObject(kind.kind, name, causes);
  };
  return {
    kind,
    check: (manifest) => refuse(manifest.name, manifestFaults(kind, manifest)),
    merge: (name, current, change) => {
      const merged: { [field: string]: unknown } = { ...current, ...change };
      const held = current as { readonly [field: string]: unknown };
      const changed = immutable.filter((field) => !sameJson(merged[field] ?? null, held[field] ?? null));
      refuse(name, [
        ...patchFaults(kind, change),
        ...changed.map((field) => ({ field: `spec.${field}`, message: `${field} is immutable` })),
      ]);
      return merged;
    },
    versionOf: (spec) => JSON.stringify(spec),
    live: (record, onVersion) => live(table, record, onVersion),
    beside: [],
    ...(table.hosts === undefined ? {} : { hosts: table.hosts.wanted }),
    ...(table.subnets === undefined ? {} : { subnets: table.subnets }),
  };
};

const live = (table: PhaseTable, record: ObjectRecord, onVersion: OnVersion = () => undefined): Living => {
  const { life } = record;
  const agenda = createAgenda();
  const initially: Status = { conditions: [] };
  const object = createStoredObject(record, agenda, initially, onVersion);
  let tries = 0;
  /** Of the spec that counts; an earlier round is given up. */
  let round = 0;
  let settled: object | undefined;
  const { hosts } = table;
  /** Without a rack there is a host for everybody. */
  let hasHost = hosts === undefined || life.hosts === '';
  /** Nothing else keeps it from beginning. */
  let mayBegin = false;

  const begin = (): void => {
    if (object.deletionAt() !== undefined || !hasHost) return;
    round += 1;
    tries += 1;
    const mine = round;
    const fails = isAmong(life.failInstall, tries, record.uid);
    let after = 0;
    for (const [index, phase] of table.phases.entries()) {
      const isLast = index === table.phases.length - 1;
      after += life[phase.after];
      object.later(after, () => {
        if (mine !== round || object.deletionAt() !== undefined) return;
        if (!isLast || !fails) {
          const before = { now: agenda.now(), status: object.status(), ...(settled && { spec: settled }) };
          object.writeStatus(phase.status({ ...record, spec: object.spec() }, before));
          if (isLast) settled = object.spec();
          return;
        }
        object.writeStatus(table.failed(life.failText));
        object.later(life.retry, () => mine === round && begin());
      });
    }
  };

  const end = (): void => {
    if (object.deletionAt() !== undefined || !object.requestDeletion() || life.noPhase === 'forever') return;
    object.later(REACTION_MS, () => object.writeStatus(table.deleting));
    const stuck = stuckFor(life);
    if (stuck !== undefined)
      object.later(REACTION_MS + Math.max(life.delete, stuck), () => object.removeFinalizer(table.finalizer));
  };

  const apply = (write: ObjectRecord['writes'][number]): void => {
    if (object.goneAt() !== undefined) return;
    switch (write.kind) {
      case 'patch':
        object.setSpec(write.spec, write.configVersion);
        // Who has none of the hosts that there are begins once it gets one.
        return mayBegin || hosts === undefined ? begin() : undefined;
      case 'host':
        hasHost = true;
        return mayBegin ? begin() : undefined;
      case 'status':
        return object.writeStatus(write.status);
      case 'delete':
        return end();
      case 'remove-finalizer':
        return object.removeFinalizer(write.finalizer);
      case 'vanish':
        return object.remove();
    }
  };

  agenda.at(record.createdAt, () => {
    object.created();
    object.later(Math.min(REACTION_MS, life.accept), () => object.adopt(table.finalizer));
    const waits = life.tenantNotReady;
    if (waits !== 0)
      object.later(Math.min(REACTION_MS, life.accept), () => {
        const message = `tenant of ${record.name} is not ready`;
        object.noteCondition('Ready', 'False', 'TenantNotReady', message);
        object.writeStatus({ phase: 'Progressing', message });
      });
    const lacks = hosts === undefined ? 0 : life.noHosts;
    if (hosts !== undefined)
      object.later(life.accept, () => {
        if (object.deletionAt() === undefined && (lacks !== 0 || !hasHost))
          object.writeStatus(hosts.lacking({ now: agenda.now(), status: object.status() }));
      });
    if (life.noPhase !== 'forever' && waits !== 'forever' && lacks !== 'forever')
      object.later(Math.max(life.noPhase, waits, lacks), () => {
        if (waits !== 0) object.note({ conditions: [], message: '' });
        mayBegin = true;
        begin();
      });
    if (life.vanishOrder > 0) object.later(life.vanishOrder, object.remove);
  });
  for (const write of record.writes) agenda.write(write.at, () => apply(write));
  return (until) => {
    agenda.run(until);
    const goneAt = object.goneAt();
    return {
      object: goneAt === undefined ? object.view() : undefined,
      goneAt,
      nextAt: goneAt === undefined ? agenda.nextAt() : undefined,
    };
  };
};

/** Milliseconds that deletion hangs; undefined: for ever. */
const stuckFor = ({ stuckDeletion }: LifeSettings): number | undefined =>
  stuckDeletion === 'forever' ? undefined : stuckDeletion;
