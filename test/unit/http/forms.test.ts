import { expect } from 'chai';
import fc from 'fast-check';
import { z } from 'zod';
import type { JsonObject } from '../../../src/domain/json.ts';
import { ApiError } from '../../../src/http/errors.ts';
import {
  COUNT,
  fieldsOf,
  filled,
  FLAG,
  listOf,
  maybe,
  neededText,
  oneOf,
  readBody,
  readQuery,
  rendered,
  TEXT,
  timeIn,
  wholeNumber,
} from '../../../src/http/ledger/forms.ts';
import { createOwnSchemas } from '../../../src/http/openapi/own-schemas.ts';
import { check } from '../../support/property.ts';

const refusalOf = (read: () => unknown): string => {
  try {
    read();
  } catch (error) {
    if (error instanceof ApiError) return `${error.options.violations?.[0]?.field ?? ''}: ${error.message}`;
    throw error;
  }
  return 'taken';
};

describe('schemas of own routes: what is asked for', () => {
  const QUERY = z.strictObject({
    limit: wholeNumber(1, 500, '100 of them').default(100),
    state: oneOf(['', 'ready', 'failed']).optional(),
    live: FLAG.default(false),
    type: z.array(filled('every type')).min(1, { error: 'must name a type' }).optional(),
    from: timeIn('all').optional(),
  });
  const asked = (text: string): string => refusalOf(() => readQuery(new URLSearchParams(text), QUERY));

  it('is read as the schema says, with what holds without it', () => {
    const text = 'limit=7&live=true&type=a,b&type=c&from=2026-01-01T01:00:00%2B01:00';
    expect(readQuery(new URLSearchParams(text), QUERY)).to.deep.equal({
      limit: 7,
      live: true,
      type: ['a', 'b', 'c'],
      from: '2026-01-01T00:00:00.000Z',
    });
    expect(readQuery(new URLSearchParams(), QUERY)).to.deep.equal({ limit: 100, live: false });
  });

  it('is refused by the name of the parameter, with what it may be', () => {
    const wrong: readonly [string, string][] = [
      ['limit=0', "limit: query parameter 'limit' must be a whole number from 1 to 500"],
      ['limit=1e2', "limit: query parameter 'limit' must be a whole number from 1 to 500"],
      ['limit=', "limit: query parameter 'limit' must not be empty; leave it out for 100 of them"],
      ['state=red', "state: query parameter 'state' must be one of ready, failed"],
      ['live=yes', "live: query parameter 'live' must be true or false"],
      ['type=,', "type: query parameter 'type' must name a type"],
      ['type=a&type=', "type: query parameter 'type' must name a type"],
      ['from=now', "from: query parameter 'from' must be a time such as 2026-11-01T00:00:00Z"],
      ['limit=1&limit=2', "limit: query parameter 'limit' may be given once"],
      ['tipe=a', "tipe: unknown query parameter 'tipe'; this route takes limit, state, live, type, from"],
    ];
    for (const [text, refusal] of wrong) expect(asked(text), text).to.equal(refusal);
  });

  it('knows no name that every object inherits', () => {
    const names = fc.constantFrom('__proto__', 'constructor', 'valueOf', 'toString', 'hasOwnProperty');
    check(
      fc.property(names, fc.string(), (name, value) => {
        const query = new URLSearchParams([[name, value]]);
        expect(refusalOf(() => readQuery(query, QUERY))).to.match(/unknown query parameter/);
      }),
    );
  });

  it('is refused by the place of a field in a body, unknown names first', () => {
    const BODY = z.strictObject({
      reason: neededText(5),
      filter: z.strictObject({ kind: TEXT.optional() }).prefault({}),
      scope: z.union([z.strictObject({ kind: z.literal('all') }), z.strictObject({ id: TEXT })], {
        error: 'must be one of two',
      }),
    });
    const refused = (body: JsonObject): string => refusalOf(() => readBody(body, BODY));
    const scope = { kind: 'all' };
    expect(refused({ scope })).to.equal("reason: field 'reason' is needed");
    expect(refused({ scope, reason: '  ' })).to.equal("reason: field 'reason' is needed");
    expect(refused({ scope, reason: 7 })).to.equal("reason: field 'reason' must be a text");
    expect(refused({ scope, reason: 'longer' })).to.equal(
      "reason: field 'reason' may have at most 5 characters",
    );
    expect(refused({ reason: 'r', scope: 'all' })).to.equal("scope: field 'scope' must be one of two");
    expect(refused({ filter: { kid: 'x' } })).to.equal(
      "filter.kid: unknown field 'filter.kid'; this route takes kind",
    );
    expect(refused({ scope, reason: 'r' })).to.equal('taken');
    expect(fieldsOf(BODY)).to.deep.equal(['reason', 'filter.kind', 'scope.kind', 'scope.id']);
  });
});

describe('schemas of own routes: answers', () => {
  const PART = z.strictObject({ last_reason: TEXT, ...maybe({ at_most: COUNT }) }).meta({ id: 'Part' });
  const WHOLE = z.strictObject({ parts: listOf(PART), is_open: FLAG.describe('Whether it is.') });

  it('show what the schema names under its names, and nothing else', () => {
    const whole = { isOpen: true, parts: [{ lastReason: 'r', atMost: undefined, secret: 'x' }] };
    expect(rendered(WHOLE, whole)).to.deep.equal({ is_open: true, parts: [{ last_reason: 'r' }] });
  });

  it('are documented by reference where they have an id', () => {
    const schemas = createOwnSchemas();
    expect(schemas.of(WHOLE)).to.deep.equal({
      type: 'object',
      properties: {
        parts: { type: 'array', items: { $ref: '#/components/schemas/Part' } },
        is_open: { type: 'boolean', description: 'Whether it is.' },
      },
      required: ['parts', 'is_open'],
      additionalProperties: false,
    });
    expect(schemas.components()['Part']).to.deep.equal({
      type: 'object',
      properties: { last_reason: { type: 'string' }, at_most: { type: 'integer', minimum: 0 } },
      required: ['last_reason'],
      additionalProperties: false,
    });
  });
});
