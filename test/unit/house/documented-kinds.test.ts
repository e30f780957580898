import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { ActingKind } from '../../../src/domain/acting-kind.ts';
import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import { contextsOf } from '../../../src/app/streams/topics.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';
import { rightsTable } from '../../support/docs/rights-table.ts';

describe('the guide for administrators', () => {
  it('holds the table of rights that the service decides by', () => {
    const rows = readFileSync('docs/administration.md', 'utf8').split('\n');
    const table = rightsTable(kinds).split('\n');
    const [head = ''] = table;
    const from = rows.indexOf(head);
    expect(rows.slice(from, from + table.length)).to.deep.equal(table);
  });
});

describe('the front page', () => {
  const rowOf = ({ words, collection, methods, hubObjects, meter }: ActingKind): string => {
    const orderedBy = methods.public.includes('Create') ? 'tenants' : 'providers';
    const [object] = hubObjects;
    const billed = meter === undefined ? '–' : `\`${meter.resourceType}\``;
    return `| ${words} | \`${collection}\` | ${orderedBy} | \`${object?.kind}\` | ${billed} |`;
  };

  it('says of every kind that is carried out who orders it, what it is on a hub, and how it is billed', () => {
    const lines = readFileSync('README.md', 'utf8').split('\n');
    const from = lines.indexOf('## What is sold');
    const rows = lines
      .slice(from, lines.indexOf('## Concepts'))
      .filter((line) => /^\| [a-zA-Z ]+ \| `/.test(line));
    expect(rows).to.deep.equal(actingKinds.map(rowOf));
  });
});

describe('the API page', () => {
  it('names every kind that tenants reach', () => {
    const rows = readFileSync('docs/api.md', 'utf8').split('\n');
    const [row = ''] = rows.filter((line) => line.startsWith('| public | `/api/fulfillment/v1` |'));
    const missing = kinds.filter(
      ({ collection, methods }) => methods.public.length > 0 && !row.includes(`\`${collection}\``),
    );
    expect(missing.map(({ collection }) => collection)).to.deep.equal([]);
  });
});

describe('the guide to the streams', () => {
  it('names every context', () => {
    const [line = ''] = readFileSync('docs/streams.md', 'utf8')
      .split('\n')
      .filter((each) => each.startsWith('Contexts: '));
    expect(contextsOf(registry).filter((context) => !line.includes(`\`${context}\``))).to.deep.equal([]);
  });
});
