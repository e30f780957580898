import { PRIVATE, PUBLIC } from '../../support/http/service.ts';
import { CLUSTERS, SMALL } from './ordering.ts';

export type Bad = {
  readonly what: string;
  readonly verb: string;
  readonly path: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Record<string, string>;
  readonly status: number;
  readonly code: number;
  readonly says: RegExp;
};

const bomb = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`key-${i}`, 'v']));

/**
 * Requests that are wrong, each in its way, and what is answered. `foreignId` is a cluster that the caller must not
 * see; the tokens count for nothing.
 */
export const badRequests = (
  foreignId: string,
  tokens: { readonly expired: string; readonly forged: string; readonly unsigned: string },
): Bad[] => {
  const post = (what: string, body: string | Uint8Array, says: RegExp, status = 400, code = 3): Bad => ({
    what,
    verb: 'POST',
    path: CLUSTERS,
    body,
    says,
    status,
    code,
  });
  const json = (what: string, body: object, says: RegExp): Bad => post(what, JSON.stringify(body), says);
  const named = (name: string) => ({ metadata: { name }, spec: SMALL });
  const get = (what: string, path: string, status: number, code: number, says: RegExp): Bad => ({
    what,
    verb: 'GET',
    path,
    status,
    code,
    says,
  });
  const withToken = (what: string, authorization: string, says: RegExp): Bad => ({
    ...get(what, CLUSTERS, 401, 16, says),
    headers: { authorization },
  });
  return [
    post('garbage', '<xml/>', /not valid JSON at line 1, column 1$/),
    post('a cut body', '{"metadata":{"name":"x"', /unexpected end at line 1, column 24$/),
    post('no body', '', /empty/),
    post('a list', '[]', /must be a JSON object/),
    post('a number', '12', /must be a JSON object/),
    post('invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), /not valid UTF-8/),
    post('deep nesting', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`, /nested deeper than 64/),
    post('a deep list', `{"spec":${'['.repeat(100)}${']'.repeat(100)}}`, /nested deeper than 64/),
    post('a key twice', '{"id":"a","id":"b"}', /more than once/),
    post(
      'a huge number',
      `{"metadata":{"version":${'9'.repeat(400)}}}`,
      /'metadata\.version': a whole number/,
    ),
    post('a BOM', '\uFEFF{}', /not valid JSON at line 1, column 1$/),
    post('a key twice in a map', '{"metadata":{"labels":{"a":"x","a":"y"}}}', /appears more than once/),
    post('a field twice in two spellings', '{"spec":{"nodeSets":{},"node_sets":{}}}', /set more than once/),
    post(
      'a number beyond doubles',
      '{"spec":{"node_sets":{"w":{"size":1e999}}}}',
      /'spec\.node_sets\.w\.size'/,
    ),
    post('a fraction', '{"spec":{"node_sets":{"w":{"size":1.5}}}}', /'spec\.node_sets\.w\.size': a whole/),
    post(
      'a lone surrogate',
      '{"metadata":{"name":"\\ud800"}}',
      /'metadata\.name': it holds a lone surrogate/,
    ),
    post(
      'a bomb of values',
      `{"metadata":{"finalizers":[${'"a",'.repeat(5_000)}"a"]}}`,
      /more than 5000 values$/,
    ),
    json(
      '10,000 labels',
      { metadata: { name: 'x', labels: bomb(10_000) }, spec: SMALL },
      /more than 5000 values$/,
    ),
    json(
      '129 labels',
      { metadata: { name: 'x', labels: bomb(129) }, spec: SMALL },
      /^field 'metadata\.labels' may hold at most 128 labels$/,
    ),
    json(
      '129 annotations',
      { metadata: { name: 'x', annotations: bomb(129) }, spec: SMALL },
      /^field 'metadata\.annotations' may hold at most 128 annotations$/,
    ),
    json(
      'annotations of 270 kB',
      { metadata: { name: 'x', annotations: { a: 'x'.repeat(270_000) } }, spec: SMALL },
      /may hold at most 262144 bytes/,
    ),
    json(
      'a label key of 100 kB',
      { metadata: { name: 'x', labels: { ['A'.repeat(100_000)]: '' } }, spec: SMALL },
      /^field 'metadata\.labels' key 'A{61}\.\.\.' name must be at most 63/,
    ),
    json('a name of 100 kB', named('a'.repeat(100_000)), /at most 63/),
    json(
      'a description of 100 kB',
      { metadata: { name: 'x', description: 'é'.repeat(100_000) }, spec: SMALL },
      /description: must be at most 256/,
    ),
    json(
      'a reference of 100 kB',
      { ...named('x'), spec: { template: { id: 'x'.repeat(100_000) } } },
      /^reference validation failed: object\.spec\.template: ClusterTemplate "x{253}" not found$/,
    ),
    json(
      'a prototype as a node set',
      JSON.parse(
        '{"metadata":{"name":"x"},"spec":{"template":{"name":"small"},"node_sets":{"__proto__":{"size":1}}}}',
      ) as object,
      /^node set '__proto__' doesn't exist in template/,
    ),
    json(
      'a prototype as a parameter',
      JSON.parse(
        '{"metadata":{"name":"x"},"spec":{"template":{"id":"osac.templates.small"},"template_parameters":{"__proto__":{"@type":"type.googleapis.com/google.protobuf.StringValue","value":"x"}}}}',
      ) as object,
      /__proto__/,
    ),
    json(
      'an Any without a type',
      { ...named('x'), spec: { ...SMALL, template_parameters: { flavour: { value: 'x' } } } },
      /'spec\.template_parameters(\.flavour)?'/,
    ),
    json('an unknown field', { nope: 1 }, /^unknown field "nope"$/),
    json(
      'an unknown inner field',
      { spec: { template: { nope: 1 } } },
      /^unknown field "spec\.template\.nope"$/,
    ),
    json('an unknown enum', { status: { state: 'NOPE' } }, /'status\.state': one of/),
    json(
      'an overflow',
      { spec: { node_sets: { w: { size: 2 ** 31 } } } },
      /'spec\.node_sets\.w\.size': a whole/,
    ),
    json('a wrong type', { metadata: { name: 5 } }, /'metadata\.name': a string/),
    json(
      'a prototype key',
      JSON.parse('{"spec":{"__proto__":{}}}') as object,
      /unknown field "spec\.__proto__"/,
    ),
    json(
      'a prototype in a map',
      JSON.parse(
        '{"metadata":{"name":"x","labels":{"__proto__":"x"}},"spec":{"template":{"name":"small"}}}',
      ) as object,
      /'metadata\.labels' key '__proto__'/,
    ),
    json('an upper-case name', named('Bad'), /^validation failed: .*metadata\.name/s),
    json('a name with a path', named('../../etc/passwd'), /metadata\.name/),
    json('a name of 64 characters', named('a'.repeat(64)), /at most 63/),
    json('a name ending in a hyphen', named('a-'), /metadata\.name/),
    json('a null name', { metadata: { name: null }, spec: SMALL }, /metadata\.name/),
    json('an id with a path', { id: '../../x', ...named('x') }, /^field 'id' must not hold/),
    json('an id of dots', { id: '..', ...named('x') }, /^field 'id' must not hold/),
    ...[
      '\u202e',
      '\u2069',
      '\u200b',
      '\u2060',
      '\u00ad',
      '\u2028',
      '\u00a0',
      '\u3164',
      '\ufe0f',
      '\u{e0041}',
    ].map((sly) =>
      json(
        `an id with U+${sly.codePointAt(0)?.toString(16)}`,
        { id: `a${sly}b`, ...named('x') },
        /^field 'id' must not hold/,
      ),
    ),
    json('an id with NUL', { id: 'a\u0000b', ...named('x') }, /^field 'id' must not hold/),
    json(
      'an id of 201 characters',
      { id: 'a'.repeat(201), ...named('x') },
      /^field 'id' must be at most 200/,
    ),
    json(
      'a parameter of an unknown type',
      {
        ...named('x'),
        spec: { ...SMALL, template_parameters: { flavour: { '@type': 'type.googleapis.com/evil.Type' } } },
      },
      /'spec\.template_parameters(\.flavour)?'/,
    ),
    json(
      'a parameter of a wrong type',
      {
        ...named('x'),
        spec: {
          ...SMALL,
          template_parameters: {
            flavour: { '@type': 'type.googleapis.com/google.protobuf.BoolValue', value: true },
          },
        },
      },
      /flavour/,
    ),
    {
      ...post('a compressed body', '{}', /content encoding 'gzip'/, 415),
      headers: { 'content-encoding': 'gzip' },
    },
    get('a path of dots', `${CLUSTERS}/../hubs`, 404, 5, /^Not Found$/),
    get(
      'an encoded path',
      `${CLUSTERS}/..%2F..%2Fetc%2Fpasswd`,
      404,
      5,
      /object with identifier '\.\.\/\.\.\/etc\/passwd' not found/,
    ),
    get('an id of NUL', `${CLUSTERS}/%00`, 404, 5, /not found/),
    get('a broken escape', `${CLUSTERS}/%zz`, 400, 3, /invalid escape/),
    get('a broken UTF-8 escape', `${CLUSTERS}/%ff`, 400, 3, /invalid escape/),
    get('an id of 4 kB', `${CLUSTERS}/${'x'.repeat(4096)}`, 404, 5, /not found/),
    get("another tenant's id", `${CLUSTERS}/${foreignId}`, 404, 5, new RegExp(`'${foreignId}' not found$`)),
    get('SQL for an id', `${CLUSTERS}/${encodeURIComponent("x' OR 1=1 --")}`, 404, 5, /not found/),
    get('an unknown collection', `${PUBLIC}/nope`, 404, 5, /^Not Found$/),
    get('an unknown subresource', `${CLUSTERS}/x/nope`, 404, 5, /^Not Found$/),
    get('a path too long', `${CLUSTERS}/x/y/z`, 404, 5, /^Not Found$/),
    get('a path of one segment', '/nothing', 404, 5, /^Not Found$/),
    get('a collection that only looks like one', `${PUBLIC}/__proto__`, 404, 5, /^Not Found$/),
    get('a subresource that only looks like one', `${CLUSTERS}/x/constructor`, 404, 5, /^Not Found$/),
    get('a bad limit', `${CLUSTERS}?limit=1e3`, 400, 3, /parsing field "limit"/),
    { ...get('a wrong verb', `${CLUSTERS}/x`, 501, 12, /^Method Not Allowed$/), verb: 'PUT' },
    { ...get('a wrong verb on a collection', CLUSTERS, 501, 12, /^Method Not Allowed$/), verb: 'DELETE' },
    { ...get('an unknown verb', CLUSTERS, 501, 12, /^Method Not Allowed$/), verb: 'PROPFIND' },
    {
      ...json('a patch of nothing known', { spec: { ssh_public_key: 'x' } }, /'nope' not found/),
      verb: 'PATCH',
      path: `${CLUSTERS}/nope`,
      status: 404,
      code: 5,
    },
    {
      ...json('a mask of nothing', {}, /'spec\.nope'/),
      verb: 'PATCH',
      path: `${CLUSTERS}/${foreignId}?update_mask=spec.nope`,
      status: 404,
      code: 5,
      says: /not found/,
    },
    {
      ...json(
        'a mask of 10,000 paths',
        {},
        /^an update mask may hold at most 100 paths, but it holds 10000$/,
      ),
      verb: 'PATCH',
      path: `${CLUSTERS}/x?update_mask=${Array.from({ length: 10_000 }, () => 'a').join(',')}`,
    },
    {
      ...json('a mask over many parameters', {}, /but it holds 101$/),
      verb: 'PATCH',
      path: `${CLUSTERS}/x?${Array.from({ length: 101 }, () => 'update_mask=a').join('&')}`,
    },
    {
      ...get('201 header fields', CLUSTERS, 431, 3, /^a request may have at most 200 header fields$/),
      headers: Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`x-${i}`, 'v'])),
    },
    ...['yes', 'TRUE', '1', '', 'true, true'].map(
      (value): Bad => ({
        ...json(`a dry run of '${value}'`, {}, /^header 'X-Dry-Run' must be true or false$/),
        headers: { 'x-dry-run': value },
      }),
    ),
    {
      ...json('a bad If-Match', {}, /^header 'If-Match' must hold one ETag/),
      verb: 'PATCH',
      path: `${CLUSTERS}/x`,
      headers: { 'if-match': '5' },
    },
    {
      ...json('a bad lock', {}, /parsing field "lock"/),
      verb: 'PATCH',
      path: `${CLUSTERS}/x?lock=perhaps`,
    },
    { ...get('a probe that is written to', '/healthz', 501, 12, /^Method Not Allowed$/), verb: 'DELETE' },
    {
      ...get('keys that are written to', '/.well-known/jwks.json', 501, 12, /^Method Not Allowed$/),
      verb: 'POST',
    },
    withToken('an expired token', `Bearer ${tokens.expired}`, /^token expired/),
    withToken('a forged token', `Bearer ${tokens.forged}`, /signature/),
    withToken('an unsigned token', `Bearer ${tokens.unsigned}`, /must be signed/),
    withToken('a garbage token', 'Bearer a.b.c', /not a JSON Web Token/),
    withToken('another scheme', 'Basic eDp5', /scheme 'Basic' is not supported/),
    { ...get('a private path of a tenant', `${PRIVATE}/hubs`, 403, 7, /^permission denied$/) },
  ];
};
