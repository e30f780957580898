import type { DnsRecord } from '../../../../app/site/ports.ts';
import { parseAddress } from '../../../../domain/ranges.ts';
import type { Item } from '../site-file.ts';
import {
  conflict,
  EVERYBODY,
  operation,
  refusal,
  shown,
  whose,
  type Act,
  type Of,
  type Operation,
  type Result,
} from './part.ts';

/** A zone's authoritative servers: a record has one owner, which is an order, and takes a while to reach every server. */
type Records = { readonly records: readonly DnsRecord[] };
type RecordItem = DnsRecord & { readonly everywhereAt: number };

const MAX_NAME = 253;
const MAX_LABEL = 63;
const LABEL = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/i;

const recordName = ({ name, type }: DnsRecord): string => `${type} ${name.toLowerCase()}`;
const namesOf = ({ records }: Records): string => [...new Set(records.map(recordName))].toSorted().join(', ');
const sameValues = (left: DnsRecord, right: DnsRecord): boolean =>
  left.values.toSorted().join() === right.values.toSorted().join();

const checkRecord = ({ name, type, values }: DnsRecord): void => {
  const labels = (name.startsWith('*.') ? name.slice(2) : name).split('.');
  if (name.length > MAX_NAME) throw refusal(`name ${name} is longer than ${MAX_NAME} octets`);
  const bad = labels.find((label) => label.length > MAX_LABEL || !LABEL.test(label));
  if (bad !== undefined)
    throw refusal(`label '${bad}' of name ${name} is not a DNS label of at most ${MAX_LABEL} octets`);
  if (values.length === 0) throw refusal(`the ${type} record ${name} has no value`);
  const width = type === 'A' ? 8 : 32;
  const odd = values.find((value) => parseAddress(value)?.length !== width);
  if (odd !== undefined) throw refusal(`${odd} is not the value of an ${type} record`);
};

const ensure = ({ records }: Records, act: Act): Result => {
  const { file, now, owner, effectId, life } = act;
  for (const record of records) checkRecord(record);
  const found = records.map((record) => {
    const there = file.itemAt<RecordItem>('record', recordName(record), now);
    if (there !== undefined && there.owner.order !== owner.order)
      throw conflict(`${record.type} record ${record.name} belongs to ${whose(there)}`);
    return { record, there };
  });
  const everywhereAt = now + life.propagation;
  let changes = 0;
  for (const { record, there } of found) {
    if (there !== undefined && sameValues(there.spec, record)) continue;
    changes += 1;
    const { name, type, values, ttlSeconds } = record;
    const spec = { name, type, values, ttlSeconds, everywhereAt };
    if (there === undefined)
      file.addItem({
        sort: 'record',
        name: recordName(record),
        owner,
        effectId,
        createdAt: now,
        readyAt: now,
        spec,
      });
    else file.changeItem(there, { generation: owner.generation, readyAt: now, spec });
  }
  return { text: changes === 0 ? 'unchanged' : 'created' };
};

const remove = ({ records }: Records, { file, now, owner }: Act): Result => {
  const ours = records.flatMap((record): readonly Item[] => {
    const there = file.itemAt<RecordItem>('record', recordName(record), now);
    return there?.owner.order === owner.order && sameValues(there.spec, record) ? [there] : [];
  });
  for (const item of ours) file.endItem(item, now);
  return { text: ours.length === 0 ? 'absent' : 'removed' };
};

export const DNS: { readonly [operation: string]: Operation } = {
  'dns.ensure': operation<Records>({ write: true, object: namesOf, undoneBy: 'dns.remove', run: ensure }),
  'dns.remove': operation<Records>({ write: true, object: namesOf, run: remove }),
  'dns.propagated': operation<Records>({
    write: false,
    object: namesOf,
    run: ({ records }, { file, now }) => {
      const missing = records.filter((record) => {
        const there = file.itemAt<RecordItem>('record', recordName(record), now);
        return there === undefined || !sameValues(there.spec, record) || there.spec.everywhereAt > now;
      });
      const value = { missing: missing.map(({ type, name }) => `${type} record ${name}`) };
      return { value, text: `missing ${missing.length}` };
    },
  }),
  'dns.observe': operation<Of>({
    write: false,
    object: ({ order }) => order ?? EVERYBODY,
    run: ({ order }, act) => {
      const value = shown<RecordItem>(act, 'record', order).map(({ owner, spec }) => {
        const { name, type, values, ttlSeconds } = spec;
        return { owner, spec: { name, type, values, ttlSeconds } };
      });
      return { value, text: `found ${value.length}` };
    },
  }),
};
