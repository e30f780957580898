import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { SignJWT, generateKeyPair } from 'jose';
import {
  DEVELOPMENT_ISSUER,
  mintToken,
  openDevelopmentIssuer,
} from '../../../src/adapters/identity/development-issuer.ts';
import { IssuerUnreachable } from '../../../src/app/tenancy/identity.ts';
import { createVerifier } from '../../../src/composition/opening.ts';
import { BadSetting, type Address } from '../../../src/config.ts';
import { silentLogger } from '../../support/loggers.ts';

const LOOPBACK: Address = { host: '127.0.0.1', port: 8001 };
const SSO = 'https://sso.example/realms/osac';
const CLUSTER = 'https://kubernetes.example';

describe('which issuers of tokens are trusted', () => {
  let secretsDir: string;
  beforeEach(() => {
    secretsDir = mkdtempSync(join(tmpdir(), 'ledger-issuers-'));
  });
  afterEach(() => rmSync(secretsDir, { recursive: true }));

  const asked: string[] = [];
  const pod = {
    namespace: 'osac',
    issuer: CLUSTER,
    fetch: async (url: string) => {
      asked.push(url);
      throw new TypeError('fetch failed');
    },
  };
  const verifier = (
    trustedIssuers: readonly string[],
    where: {
      readonly httpAddress?: Address;
      readonly grpcAddress?: Address;
      readonly nodeEnv?: string;
      readonly inPod?: boolean;
      readonly audience?: string;
    } = {},
  ) =>
    createVerifier(
      {
        trustedIssuers: trustedIssuers.map((issuer) => ({ issuer })),
        tokenAudience: where.audience,
        httpAddress: where.httpAddress ?? LOOPBACK,
        grpcAddress: where.grpcAddress,
        secretsDir,
      },
      { pod: where.inPod === true ? pod : undefined, nodeEnv: where.nodeEnv, logger: silentLogger },
    );
  const developmentToken = (more: { readonly audience?: string } = {}): Promise<string> =>
    mintToken(secretsDir, { user: 'alice', admin: true, ttlSeconds: 60, now: Date.now(), ...more });
  const fault = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

  it('the development issuer where none is set', async () => {
    const { issuers, verify } = await verifier([]);
    expect(issuers).to.deep.equal([DEVELOPMENT_ISSUER]);
    expect(await verify(await developmentToken())).to.include({ issuer: DEVELOPMENT_ISSUER });
  });

  it('with an audience that every token must name, the tokens of `ledgerctl token` too', async () => {
    const { verify } = await verifier([], { audience: 'osac-api' });
    expect(await verify(await developmentToken({ audience: 'osac-api' }))).to.include({ userName: 'alice' });
    for (const [more, why] of [
      [{}, "claim 'aud' is missing"],
      [{ audience: 'other' }, "claim 'aud' is not acceptable"],
    ] as const)
      expect(String(await fault(verify(await developmentToken(more))))).to.include(why);
  });

  it('never the development issuer where another one is set, also where its key lies there', async () => {
    await openDevelopmentIssuer(secretsDir);
    const { issuers, verify } = await verifier([SSO]);
    expect(issuers).to.deep.equal([SSO]);
    expect(String(await fault(verify(await developmentToken())))).to.include(
      'its issuer is not trusted here',
    );
  });

  it('nobody in production or where others can reach it: refused by its setting, and no key is made', async () => {
    for (const where of [
      { nodeEnv: 'production' },
      { nodeEnv: ' Production' },
      { httpAddress: { host: '0.0.0.0', port: 8001 } },
      { grpcAddress: { host: '0.0.0.0', port: 8000 } },
    ]) {
      const error = await fault(verifier([], where));
      expect(error).to.be.instanceOf(BadSetting);
      expect(String(error)).to.include('LEDGER_TRUSTED_ISSUERS: the development token issuer is refused');
      expect((await verifier([SSO], where)).issuers).to.deep.equal([SSO]);
    }
    expect(existsSync(secretsDir) && readdirSync(secretsDir)).to.deep.equal([]);
  });

  it('in a pod the service accounts of its cluster too, which are shown to nobody', async () => {
    const { issuers, verify } = await verifier([SSO], { inPod: true });
    expect(issuers).to.deep.equal([SSO]);
    const { privateKey } = await generateKeyPair('RS256');
    const token = await new SignJWT({ sub: 'system:serviceaccount:osac:admin' })
      .setProtectedHeader({ alg: 'RS256', kid: 'k' })
      .setIssuer(CLUSTER)
      .setExpirationTime('5m')
      .sign(privateKey);
    expect(await fault(verify(token))).to.be.instanceOf(IssuerUnreachable);
    expect(asked, 'by the pod’s own way').to.have.length(1);
    expect(asked[0]).to.match(/^https:\/\/kubernetes\.example\//);
  });
});
