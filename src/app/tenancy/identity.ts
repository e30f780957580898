/** Who uses a token that speaks for somebody else. */
export type ActingParty = {
  /** Where it is not the token's issuer, that one alone says so: the named one has not signed anything. */
  readonly issuer: string;
  readonly subject: string;
  readonly userName: string;
  readonly email?: string;
};

/**
 * Port of token verification (OSAC). Adapters check signatures and claim rules; what the claims mean
 * for tenants and roles is decided in `src/http/osac/principal.ts`.
 */
export type VerifiedToken = {
  readonly issuer: string;
  readonly subject: string;
  /** `preferred_username`, else `username`, else `sub`; of a Kubernetes service account always `sub`. */
  readonly userName: string;
  readonly email?: string;
  /**
   * Who acts on behalf of the subject (RFC 8693 §4.1, claim `act`); absent: the subject itself. What may be done
   * follows
   * from the subject's claims alone: this says whom the history names.
   */
  readonly actingParty?: ActingParty;
  /**
   * The client whose own account this is: `preferred_username` is `service-account-<client>` for the client in
   * `azp`, else
   * `client_id`, and the token names no organization. Absent: of anybody else.
   */
  readonly ownAccountOf?: string;
  /** True when the token carries `kubernetes.io`: groups are Kubernetes groups, the tenant is the namespace. */
  readonly serviceAccount: boolean;
  /** Tenants of the `organization` claim, both forms; empty for service accounts. */
  readonly organizations: readonly string[];
  /** The claim `groups` alone. */
  readonly groups: readonly string[];
  /** Groups inside each tenant, where `organization` is an object; absent where it is a list. */
  readonly tenantGroups?: ReadonlyMap<string, readonly string[]>;
  readonly realmRoles: readonly string[];
  /** Seconds since 1970 after which it is no longer accepted (leeway not added). */
  readonly expiresAt: number;
  /** SHA-256 of its `jti` and issuer, else of its signature, base64url: names it in metadata without holding it. */
  readonly tokenIdHash: string;
};

/** Seconds by which clocks may differ (OSAC): for so long a token is accepted beyond its time. */
export const LEEWAY_S = 5;

export type TokenVerifier = {
  /** Issuers that clients may use, as capabilities shows them. */
  readonly issuers: readonly string[];
  /** Throws TokenRejected (the caller's fault) or IssuerUnreachable (ours, temporary). */
  verify(token: string): Promise<VerifiedToken>;
  /** The result of an earlier `verify` of this very token while it is still valid; no waiting, no signature check. */
  recall(token: string): VerifiedToken | undefined;
};

/** The token is not acceptable. `reason` is one clause for the caller and never holds a part of the token. */
export class TokenRejected extends Error {
  override readonly name = 'TokenRejected';
  readonly reason: string;
  /** True when only its time is over: the caller should fetch a new one. */
  readonly expired: boolean;
  constructor(reason: string, options: ErrorOptions & { expired?: boolean } = {}) {
    super(`token is not valid: ${reason}`, options);
    this.reason = reason;
    this.expired = options.expired ?? false;
  }
}

/** The keys of the token's issuer cannot be fetched, so nothing can be said about the token. */
export class IssuerUnreachable extends Error {
  override readonly name = 'IssuerUnreachable';
  readonly issuer: string;
  readonly retryAfterMs: number;
  constructor(issuer: string, retryAfterMs: number, options?: ErrorOptions) {
    super(`the keys of issuer ${issuer} cannot be fetched`, options);
    this.issuer = issuer;
    this.retryAfterMs = retryAfterMs;
  }
}
