import { openDevelopmentIssuer, whyNoDevelopmentIssuer } from '../adapters/identity/development-issuer.ts';
import { createIssuerKeys, type IssuerKeys } from '../adapters/identity/issuer-keys.ts';
import type { PodIdentity } from '../adapters/identity/pod-identity.ts';
import { createTokenVerifier } from '../adapters/identity/token-verifier.ts';
import type { TokenVerifier } from '../app/tenancy/identity.ts';
import type { Logger } from '../app/ports.ts';
import { BadSetting, type Config } from '../config.ts';

/**
 * Verifies tokens of the configured issuers, of the development issuer where there are none, and, in a pod, of the
 * cluster's own service accounts. Throws BadSetting when the development issuer is refused here.
 */
export const createVerifier = async (
  config: Pick<Config, 'trustedIssuers' | 'tokenAudience' | 'httpAddress' | 'grpcAddress' | 'secretsDir'>,
  { pod, nodeEnv, logger }: { pod: PodIdentity | undefined; nodeEnv: string | undefined; logger: Logger },
): Promise<TokenVerifier> => {
  const issuers = new Map<string, IssuerKeys>();
  const now = (): number => performance.now();
  const onFailure = (issuer: string, error: unknown): void =>
    logger.warn({ err: error, issuer }, 'the keys of a token issuer cannot be fetched');
  for (const { issuer } of config.trustedIssuers)
    issuers.set(issuer, createIssuerKeys({ issuer, now, onFailure }));
  if (issuers.size === 0) {
    const why = [config.httpAddress, config.grpcAddress]
      .map((address) => address && whyNoDevelopmentIssuer({ nodeEnv, listenHost: address.host }))
      .find((reason) => reason !== undefined);
    if (why !== undefined) throw new BadSetting(`LEDGER_TRUSTED_ISSUERS: ${why}`);
    const development = await openDevelopmentIssuer(config.secretsDir);
    issuers.set(development.issuer, development.keys);
  }
  // Service accounts of the cluster do not sign in: their issuer is trusted, not shown.
  const advertised = [...issuers.keys()];
  if (pod !== undefined && !issuers.has(pod.issuer))
    issuers.set(pod.issuer, createIssuerKeys({ issuer: pod.issuer, fetch: pod.fetch, now, onFailure }));
  const { tokenAudience: audience } = config;
  return createTokenVerifier({
    issuers,
    advertised,
    now: Date.now,
    ...(audience === undefined ? {} : { audience }),
  });
};
