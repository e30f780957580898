import { expect } from 'chai';
import {
  callerOf,
  PUBLIC,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
  type TestServiceOptions,
} from '../http/service.ts';
import { eventually } from '../eventually.ts';

export const AUDIT = '/api/audit/v1';

/** A service with the audit surface, its callers, and what specs of it do again and again. */
export type AuditStage = Awaited<ReturnType<typeof startAuditStage>>;

export const startAuditStage = async (options: TestServiceOptions = {}) => {
  const service = await startTestService({ audit: {}, ...options });
  const callerFor = async (who: Parameters<TestService['token']>[0]): Promise<Caller> =>
    callerOf(service, await service.token(who));
  const admin = await callerFor({ user: 'root', admin: true });
  await seedCatalogue(admin);
  const order = async (caller: Caller, name: string): Promise<string> => {
    const reply = await caller('POST', `${PUBLIC}/clusters`, {
      metadata: { name },
      spec: { template: { id: 'osac.templates.small' } },
    });
    expect(reply.status, reply.text).to.equal(200);
    return textAt(reply.json, 'id');
  };
  /** Everything that was stored shows in the audit view, and is signed unless told otherwise. */
  const settled = async (signed = true): Promise<void> => {
    const last = (await service.store.lastPosition()) ?? '';
    expect(await service.models.waitFor('audit', last, { timeoutMs: 5_000 })).to.equal(true);
    const size = service.models.audit?.size() ?? 0;
    await until(async () => !signed || ((await service.audit?.auditing.heads.latest())?.size ?? 0) >= size);
  };
  const exported = async (caller: Caller, body: object): Promise<Json> => {
    const asked = await caller('POST', `${AUDIT}/exports`, body);
    expect(asked.status, asked.text).to.equal(202);
    const path = `${AUDIT}/exports/${textAt(asked.json, 'id')}`;
    expect(asked.headers.get('location')).to.equal(path);
    let state: Json = asked.json;
    await until(async () => {
      state = (await caller('GET', path)).json;
      return ['complete', 'failed'].includes(textAt(state, 'state'));
    });
    return state;
  };
  const fetched = async (token: string, state: Json): Promise<Buffer> => {
    const reply = await fetch(service.url + textAt(state, 'file'), {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(reply.status).to.equal(200);
    return Buffer.from(await reply.arrayBuffer());
  };
  return {
    service,
    callerFor,
    admin,
    auditor: await callerFor({ user: 'audrey', tenants: ['t1'], roles: ['auditor'] }),
    alice: await callerFor({ user: 'alice', tenants: ['t1'] }),
    order,
    settled,
    exported,
    fetched,
  };
};

export const reasonOf = (reply: Reply): string => `${reply.status} ${textAt(reply.json, 'code')}`;
export const detailOf = (reply: Reply): string => textAt(reply.json, 'detail');

/** Waits for a condition; throws after a minute. */
export const until = (holds: () => Promise<boolean>): Promise<void> =>
  eventually('what was waited for', holds, 60_000);
