/** A DNS label, as names of tenants and of Kubernetes namespaces are. */
export const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** What an issuer may claim of the holders of its tokens. */
export type IssuerScope = {
  /** Tenants that it may speak for. */
  readonly tenants: 'all' | readonly string[];
  /** Provider admins. */
  readonly admins: boolean;
  /** Service accounts of Kubernetes. */
  readonly services: boolean;
};
/** `scope` absent: everything. */
type TrustedIssuer = { readonly issuer: string; readonly scope?: IssuerScope };
const SCOPE_WORDS = ['*', 'admins', 'services'];

/** A tenant of such a name would be taken for the word that was meant. */
const MISSPELT: ReadonlyMap<string, string> = new Map([
  ['admin', 'admins'],
  ['service', 'services'],
  ['all', '*'],
]);

/** A scope from `acme;globex;admins;services`, or what is wrong with it. */
const readScope = (text: string): IssuerScope | string => {
  if (text.trim() === '')
    return 'no scope after `=`: give tenants, `*`, `admins` or `services`, divided by `;`';
  const words = text.split(';').map((word) => word.trim());
  const tenants = words.filter((word) => !SCOPE_WORDS.includes(word));
  const misspelt = tenants.find((word) => MISSPELT.has(word));
  if (misspelt !== undefined)
    return `${JSON.stringify(misspelt)} is not a scope; write \`${MISSPELT.get(misspelt)}\``;
  const odd = tenants.find((word) => !LABEL.test(word));
  if (odd !== undefined)
    return `${JSON.stringify(odd)} is neither a tenant nor one of ${SCOPE_WORDS.join(', ')}`;
  return {
    tenants: words.includes('*') ? 'all' : tenants,
    admins: words.includes('admins'),
    services: words.includes('services'),
  };
};

/** An issuer from `<issuer>` or `<issuer>=<scope>`, or what is wrong with it. */
const readIssuer = (text: string): TrustedIssuer | string => {
  const [issuer = '', ...rest] = text.split('=');
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined;
  if (url?.protocol !== 'https:') return 'must be https URLs, each alone or followed by `=` and its scope';
  if (url.username !== '' || url.password !== '') return 'must hold no user name or password';
  if (rest.length === 0) return { issuer };
  const scope = readScope(rest.join('='));
  return typeof scope === 'string' ? scope : { issuer, scope };
};

/** The issuers of LEDGER_TRUSTED_ISSUERS, or what is wrong with one. */
export const readIssuers = (texts: readonly string[]): TrustedIssuer[] | string => {
  const issuers: TrustedIssuer[] = [];
  for (const text of texts) {
    const read = readIssuer(text);
    if (typeof read === 'string') return read;
    if (issuers.some(({ issuer }) => issuer === read.issuer)) return `${read.issuer} is named twice`;
    issuers.push(read);
  }
  return issuers;
};
