import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { createJsonSchemas } from '../../../src/app/json-schema/json-schemas.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { cases, check } from '../../support/property.ts';

const schemas = createJsonSchemas();
const misfit = (schema: object | boolean, value: JsonValue): string | undefined =>
  schemas.judge()(JSON.stringify(schema), value);
const problemWith = (schema: unknown): string | undefined => {
  const read = schemas.read(typeof schema === 'string' ? schema : JSON.stringify(schema));
  return read.ok ? undefined : read.problem;
};

/** Not written out: a literal `then` looks like a promise. */
const [IF, THEN, ELSE] = ['if', 'then', 'else'] as const;
const when = (premise: JsonValue, yes: JsonValue, no: JsonValue): JsonObject =>
  Object.fromEntries([
    [IF, premise],
    [THEN, yes],
    [ELSE, no],
  ]);

describe('JSON schemas of governed fields', () => {
  it('say what is asked of a value and where, and never the value', () => {
    const cases: [object | boolean, JsonValue, string][] = [
      [{ type: 'integer' }, 1.5, 'must be of type integer'],
      [{ type: ['string', 'null'] }, 5, 'must be of type string or null'],
      [{ maximum: 100 }, 500, 'must be at most 100'],
      [{ exclusiveMinimum: 0 }, 0, 'must be greater than 0'],
      [{ multipleOf: 3 }, 4, 'must be a multiple of 3'],
      [{ enum: ['a', 1] }, 'SECRET', 'must be one of "a",1'],
      [{ const: { a: 1 } }, { a: 2 }, 'must be {"a":1}'],
      [{ maxLength: 2 }, '😀😀😀', 'must be at most 2 characters'],
      [{ pattern: '^[a-z]+$' }, 'SECRET', "must match the pattern '^[a-z]+$'"],
      [{ items: { type: 'string' } }, ['a', 1], '1: must be of type string'],
      [{ prefixItems: [{ type: 'string' }], items: false }, ['a', 1], '1: must not be there'],
      [
        { contains: { const: 1 }, maxContains: 1 },
        [1, 1],
        'must contain at most 1 item(s) of a certain form',
      ],
      [{ contains: { const: 1 } }, [2], 'must contain at least 1 item(s) of a certain form'],
      [{ uniqueItems: true }, [{ a: 1 }, { a: 1 }], 'must not hold the same item twice'],
      [{ minItems: 1 }, [], 'must have at least 1 item(s)'],
      [{ required: ['size'] }, {}, "must have 'size'"],
      [
        { properties: { a: { properties: { b: { maximum: 1 } } } } },
        { a: { b: 2 } },
        'a.b: must be at most 1',
      ],
      [{ properties: { a: true }, additionalProperties: false }, { a: 1, b: 2 }, "must not have 'b'"],
      [{ additionalProperties: { type: 'string' } }, { x: 1 }, 'x: must be of type string'],
      [
        { patternProperties: { '^x-': { type: 'string' } } },
        { 'x-a': 1, y: 1 },
        'x-a: must be of type string',
      ],
      [{ propertyNames: { maxLength: 1 } }, { ab: 1 }, "the name 'ab' must be at most 1 characters"],
      [{ minProperties: 1 }, {}, 'must have at least 1 entries'],
      [{ dependentRequired: { a: ['b'] } }, { a: 1 }, "must have 'b' beside 'a'"],
      [{ dependentSchemas: { a: { required: ['b'] } } }, { a: 1 }, "must have 'b'"],
      [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, 3, 'must be at most 2'],
      [{ anyOf: [{ type: 'string' }, { maximum: 2 }] }, 3, 'must fit at least one of 2 alternatives'],
      [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, 3, 'must fit exactly one of 2 alternatives, but fits 2'],
      [{ not: { type: 'number' } }, 3, 'must not fit what is excluded'],
      [when({ minimum: 10 }, { multipleOf: 10 }, { maximum: 5 }), 11, 'must be a multiple of 10'],
      [when({ minimum: 10 }, { multipleOf: 10 }, { maximum: 5 }), 7, 'must be at most 5'],
      [{ $ref: '#/$defs/size', $defs: { size: { maximum: 4 } } }, 5, 'must be at most 4'],
      [false, 1, 'must not be there'],
    ];
    for (const [schema, value, problem] of cases)
      expect(misfit(schema, value), JSON.stringify(schema)).to.equal(problem);
  });

  it('let pass what fits, and what they say nothing about', () => {
    expect(misfit(true, 1)).to.equal(undefined);
    expect(misfit({ title: 'Size', format: 'email', 'x-order': 1, maximum: 5 }, 'text')).to.equal(undefined);
    expect(misfit({ type: 'integer' }, 3)).to.equal(undefined);
    expect(misfit({ required: ['toString'] }, {})).to.equal("must have 'toString'");
    expect(misfit({ properties: { constructor: { type: 'string' } } }, {})).to.equal(undefined);
    expect(
      schemas.judge()('{"properties":{"__proto__":{"type":"string"}}}', JSON.parse('{"__proto__":1}')),
    ).to.equal('__proto__: must be of type string');
  });

  it('are refused when they are no schema, or one that could hold the thread', () => {
    const nested = (levels: number): object => (levels === 0 ? {} : { items: nested(levels - 1) });
    const refused: [unknown, string][] = [
      ['{', 'it is not JSON'],
      ['[]', 'a schema must be an object, true or false'],
      [{ type: 'text' }, "'type' must be one or more of"],
      [{ type: [] }, "'type' must be one or more of"],
      [{ type: 'constructor' }, "'type' must be one or more of"],
      [{ minimum: '1' }, "'minimum' must be a number"],
      [{ minLength: -1 }, "'minLength' must be a whole number"],
      [{ multipleOf: 0 }, "'multipleOf' must be greater than 0"],
      [{ items: [{}] }, "'items' must be one schema"],
      [{ required: 'a' }, "'required' must be a list"],
      [{ properties: [] }, "'properties' must be an object"],
      [{ anyOf: [] }, "'anyOf' must not be empty"],
      [{ uniqueItems: 1 }, "'uniqueItems' must be true or false"],
      [{ unevaluatedProperties: false }, "keyword 'unevaluatedProperties' is not supported"],
      [{ $id: 'http://x.example/' }, "keyword '$id' is not supported"],
      [{ toString: 1 }, "keyword 'toString' is not supported"],
      [{ $ref: 'http://x.example/schema' }, "'$ref' must point into the schema itself"],
      [{ $ref: '#/$defs/no' }, "'$ref' #/$defs/no points at nothing"],
      [{ $ref: '#anchor' }, 'points at nothing'],
      [{ properties: { a: { $ref: '#' } } }, "'$ref' # refers to itself"],
      [
        { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
        'refers to itself',
      ],
      [nested(17), 'it has more than 16 levels'],
      [{ enum: [nested(30)] }, 'a value in it has more than 16 levels'],
      [{ anyOf: Array.from({ length: 256 }, () => true) }, 'it holds more than 256 schemas'],
      [{ description: 'x'.repeat(8_192) }, 'it has more than 8192 characters'],
      [{ pattern: '(?=a)b' }, "pattern '(?=a)b' is not a regular expression of RE2"],
      [{ pattern: '(a)\\1' }, 'is not a regular expression of RE2'],
      [{ pattern: '(' }, 'is not a regular expression of RE2'],
      [{ pattern: '((a|b){10}c*){100}' }, 'its patterns are too large'],
      [{ pattern: 'x'.repeat(513) }, 'a pattern has more than 512 characters'],
      [{ patternProperties: { '(': true } }, 'is not a regular expression of RE2'],
    ];
    for (const [schema, problem] of refused)
      expect(problemWith(schema), JSON.stringify(schema).slice(0, 80)).to.contain(problem);
    expect(misfit({ type: 'text' }, 1)).to.contain('its schema cannot be used');
    expect(problemWith(nested(14))).to.equal(undefined);
  });

  it('never grow by references that are used many times', () => {
    const doubling = Object.fromEntries(
      Array.from({ length: 15 }, (_, i) => [
        `d${i}`,
        { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
      ]),
    );
    expect(problemWith({ $ref: '#/$defs/d0', $defs: { ...doubling, d15: {} } })).to.match(/more than \d+/);
  });

  it('judge no value for longer than their bound, and say so', () => {
    const hard: [object, JsonValue][] = [
      [{ uniqueItems: true }, Array.from({ length: 20_000 }, (_, i) => ({ i }))],
      [
        { items: { not: { enum: Array.from({ length: 250 }, (_, i) => i) } } },
        Array.from({ length: 2_000 }, () => 'x'),
      ],
      [{ pattern: '(x+x+)+y' }, 'x'.repeat(100_000)],
      [{ pattern: '((a|b){10}c*){20}' }, 'ab'.repeat(5_000)],
      [{ maxLength: 1_000_000 }, 'x'.repeat(500_000)],
      [
        { allOf: Array.from({ length: 100 }, () => ({ items: true })) },
        Array.from({ length: 5_000 }, () => 1),
      ],
    ];
    for (const [schema, value] of hard) {
      const text = JSON.stringify(schema);
      expect(problemWith(text), text.slice(0, 80)).to.equal(undefined);
      const started = process.cpuUsage();
      expect(schemas.judge()(text, value), text.slice(0, 80)).to.equal(
        'the value is too large to be checked',
      );
      const { user, system } = process.cpuUsage(started);
      // Ten times the bound: other work of the process counts as well.
      expect((user + system) / 1_000, text.slice(0, 80)).to.be.lessThan(200);
    }
    expect(createJsonSchemas({ maxSteps: 3 }).judge()('{"type":"string","maxLength":3}', 'abc')).to.contain(
      'too large',
    );
  });

  it('share one bound among all values of a request', () => {
    const judge = createJsonSchemas({ maxSteps: 10 }).judge();
    expect(judge('{"maxLength":9}', 'abc')).to.equal(undefined);
    expect(judge('{"maxLength":9}', 'abc')).to.equal(undefined);
    expect(judge('{"maxLength":9}', 'abc')).to.contain('too large');
    expect(judge('true', 1)).to.contain('too large');
  });

  it('tell what their patterns cost', () => {
    const size = (schema: string): number => {
      const read = schemas.read(schema);
      return read.ok ? read.patternSize : NaN;
    };
    expect(size('{"maxLength":9}')).to.equal(0);
    expect(size('{"pattern":"a{100}"}')).to.be.greaterThan(100).and.lessThan(200);
    expect(size('{"allOf":[{"pattern":"a{100}"},{"pattern":"a{100}"}]}')).to.be.greaterThan(200);
  });

  it('agree with a schema compiler about every value (fast-check)', () => {
    const number = fc.integer({ min: -3, max: 6 });
    // The compiler's own comparison throws on keys such as `toString`.
    const name = fc.constantFrom('a', 'b', 'c', 'x-1');
    const value = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<JsonValue>(null, true, false, '', 'a', 'ab', 'x-1', 0.5),
        number,
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(name, tie('value'), { maxKeys: 3, noNullPrototype: true }),
      ),
    })).value;
    const schema = fc.letrec<{ schema: JsonValue }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3 },
        fc.boolean(),
        fc.record(
          {
            type: fc.constantFrom('string', 'number', 'integer', 'array', 'object', 'null', 'boolean'),
            enum: fc.array(value, { minLength: 1, maxLength: 3 }),
            const: value,
            minimum: number,
            exclusiveMaximum: number,
            multipleOf: fc.integer({ min: 1, max: 3 }),
            minLength: fc.nat(3),
            maxLength: fc.nat(3),
            pattern: fc.constantFrom('^a', 'b$', '[0-9]', '^x-'),
            minItems: fc.nat(2),
            uniqueItems: fc.boolean(),
            maxProperties: fc.nat(2),
            required: fc.uniqueArray(name, { maxLength: 2 }),
            dependentRequired: fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), {
              noNullPrototype: true,
            }),
          },
          { requiredKeys: [] },
        ),
        fc.record(
          {
            items: tie('schema'),
            prefixItems: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
            properties: fc.dictionary(name, tie('schema'), { maxKeys: 2, noNullPrototype: true }),
            patternProperties: fc.dictionary(fc.constantFrom('^a', '^x'), tie('schema'), {
              maxKeys: 2,
              noNullPrototype: true,
            }),
            additionalProperties: tie('schema'),
            propertyNames: tie('schema'),
            dependentSchemas: fc.dictionary(name, tie('schema'), { maxKeys: 2, noNullPrototype: true }),
            allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
            anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
            oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
            // Not alone: the compiler lets `not: true` pass inside an alternative.
            not: tie('schema').map((inner) => ({ allOf: [inner, { minimum: -2 }] })),
          },
          { requiredKeys: [] },
        ),
        fc
          .tuple(tie('schema'), tie('schema'), tie('schema'))
          .map(([premise, yes, no]) => when(premise, yes, no)),
        // Alone: beside `prefixItems`, and with `false`, the compiler lets an empty list pass.
        fc.record(
          {
            contains: tie('schema').filter((inner) => inner !== false),
            minContains: fc.nat(2),
            maxContains: fc.nat(2),
          },
          { requiredKeys: ['contains'] },
        ),
      ) as fc.Arbitrary<JsonValue>,
    })).schema;
    check(
      fc.property(schema, fc.array(value, { minLength: 1, maxLength: 5 }), (drawn, values) => {
        fc.pre(problemWith(drawn) === undefined);
        const oracle = new Ajv2020({
          strict: false,
          ownProperties: true,
          meta: false,
          validateSchema: false,
          logger: false,
        });
        const compiled = oracle.compile(drawn as object);
        // For some schemas its own code breaks (a list of evaluated names that it has not made): that is no verdict.
        const verdictOf = (instance: JsonValue): boolean => {
          try {
            return compiled(instance) as boolean;
          } catch (error) {
            fc.pre(!(error instanceof TypeError));
            throw error;
          }
        };
        for (const instance of values)
          expect(
            misfit(drawn as object, instance) === undefined,
            JSON.stringify({ drawn, instance }),
          ).to.equal(verdictOf(instance));
      }),
      { numRuns: cases(150) },
    );
  }).timeout(30_000);
});
