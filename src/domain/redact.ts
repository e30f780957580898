/** What stands for what was taken out. */
const HIDDEN = '***';

/** Names whose value is a credential, as they occur in JSON, YAML, settings and command lines. */
const NAMES = [
  'auth',
  'password',
  'passwd',
  'passphrase',
  'identitytoken',
  'registrytoken',
  // Bounded, so that no text takes more than a moment to look through.
  '[a-z_-]{0,40}token',
  '[a-z_-]{0,40}secret(?:_?(?:key|access_?key))?',
  'api_?key',
  'private_?key',
  'client-key-data',
  'client-certificate-data',
  'dockerconfigjson',
  'pullsecret',
  'pull_secret',
  'userdata',
].join('|');

/** A quote may be escaped any number of times: Ansible prints JSON in JSON. */
const QUOTE = String.raw`\\*["']`;
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g, HIDDEN],
  // Certificates, keys and whole sealed documents in base64; before the token below, whose search it keeps short.
  [/[A-Za-z0-9+/_-]{120,}={0,2}/g, HIDDEN],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?/g, HIDDEN],
  [/\bsha256~[A-Za-z0-9_-]{16,}/g, HIDDEN],
  [/(:\/\/)[^/\s:@]+:[^/\s@]+@/g, `$1${HIDDEN}@`],
  // All of such a header: the scheme before its value may be any word.
  [/(\bauthorization\\*["']?\s*[:=]\s*\\*["']?)[^\n"'\\]+/gi, `$1${HIDDEN}`],
  [/\b(bearer|basic)\s+[A-Za-z0-9+/_.~=-]+/gi, `$1 ${HIDDEN}`],
  // A quoted value up to its own closing quote, which is escaped as often as the opening one was.
  [
    new RegExp(String.raw`(\b(?:${NAMES})(?:${QUOTE})?\s*[:=]\s*)(${QUOTE})(?:(?!\2)[\s\S])*?(?:\2|$)`, 'gi'),
    `$1$2${HIDDEN}$2`,
  ],
  [new RegExp(String.raw`(\b(?:${NAMES})\s*[:=]\s*)(?!\\*["'])[^\s,;&}]+`, 'gi'), `$1${HIDDEN}`],
];

/** Shorter values would take ordinary words out of the text. */
const SHORTEST = 4;

/**
 * The text without anything that is or looks like a credential. `known` are values that must not be in it in whatever
 * way they are written: as they are, escaped for JSON once or twice, or in base64.
 */
export const redacted = (text: string, known: readonly string[] = []): string => {
  const values = [...new Set(known.flatMap(writtenWays))]
    .filter((value) => value.length >= SHORTEST)
    .toSorted((left, right) => right.length - left.length);
  const plain = values.reduce((rest, value) => rest.replaceAll(value, HIDDEN), text);
  return PATTERNS.reduce((rest, [pattern, instead]) => rest.replaceAll(pattern, instead), plain);
};

const writtenWays = (value: string): readonly string[] => {
  const once = JSON.stringify(value).slice(1, -1);
  return [value, once, JSON.stringify(once).slice(1, -1), Buffer.from(value).toString('base64')];
};

/** Credentials inside a pull secret (a docker configuration): the whole, and what each registry is given. */
export const secretsInPullSecret = (pullSecret: string): readonly string[] => {
  const found = [pullSecret];
  const take = (value: unknown, key: string): void => {
    if (typeof value === 'object' && value !== null) {
      for (const [name, inner] of Object.entries(value)) take(inner, name);
    } else if (typeof value === 'string' && /^(auth|password|identitytoken|registrytoken)$/i.test(key)) {
      found.push(value);
      if (key === 'auth') {
        const decoded = Buffer.from(value, 'base64').toString('utf8');
        const password = decoded.slice(decoded.indexOf(':') + 1);
        if (decoded.includes(':') && password !== '') found.push(decoded, password);
      }
    }
  };
  try {
    take(JSON.parse(pullSecret), '');
  } catch {
    // Not JSON: then only the whole is known.
  }
  return found;
};

/** The last lines of an output, at most `max` characters. A line that was cut at its beginning is left out. */
export const tailOf = (text: string, max: number): string => {
  const trimmed = text.trimEnd();
  if (trimmed.length <= max) return trimmed;
  const tail = trimmed.slice(-max);
  const line = tail.indexOf('\n');
  return line === -1 ? tail : tail.slice(line + 1);
};

/** Without colours and other terminal controls, which Ansible prints. */
export const withoutControls = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  text.replaceAll(/\u001B\[[0-9;?]*[A-Za-z]/g, '').replaceAll(/[\u0000-\u0008\u000B-\u001F\u007F]/g, '');
