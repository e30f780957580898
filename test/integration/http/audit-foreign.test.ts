import { expect } from 'chai';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { isEncrypted } from '../../../src/domain/personal.ts';
import { parseStreamName, streamName } from '../../../src/domain/stream-name.ts';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { PRIVATE, PUBLIC, type Reply } from '../../support/http/service.ts';

/**
 * What is foreign answers as what never was, whatever the kind: of every category of streams in the log one thing that is not
 * of the auditor's tenant is asked for in every way that there is, and so is an id of the same form that nothing has.
 */
describe('audit API: what is of others', function () {
  this.timeout(60_000);
  let stage: AuditStage;
  let callers = 0;
  beforeEach(async () => {
    stage = await startAuditStage({ provisionUsers: true, audit: { exports: false } });
  });
  afterEach(() => stage.service.close());

  type Thing = { readonly kind: string; readonly id: string };

  /** Things of two tenants and of nobody, with ids that somebody has chosen where that is possible. */
  const fill = async (): Promise<void> => {
    const { admin, alice, callerFor, order } = stage;
    const bob = await callerFor({ user: 'bob', tenants: ['t2'] });
    const tara = await callerFor({ user: 'tara', tenants: ['t2'], roles: ['auditor'] });
    await order(alice, 'mine');
    const small = { template: { id: 'osac.templates.small' } };
    for (const [caller, path, body] of [
      [bob, `${PUBLIC}/clusters`, { id: 'gx2', metadata: { name: 'theirs' }, spec: small }],
      [bob, `${PUBLIC}/secrets`, { id: 'sx2', metadata: { name: 's' }, data: { k: 'dg==' } }],
      [admin, `${PRIVATE}/hubs`, { id: 'hub-7', spec: { namespace: 'osac' } }],
      [tara, `${AUDIT}/exports`, {}],
    ] as const) {
      const reply = await caller('POST', path, body);
      expect(reply.status, `${path}: ${reply.text}`).to.be.oneOf([200, 202]);
    }
    expect((await tara('GET', `${AUDIT}/events`)).status).to.equal(200);
  };

  /** Of each category, and of each kind of owner, one thing that is not of t1. */
  const othersThings = async (): Promise<{ readonly foreign: Thing; readonly absent: Thing }[]> => {
    const owners = new Map<string, string>();
    for await (const { stream, revision, metadata } of stage.service.store.readAll({ limit: 10_000 }))
      if (revision === 0 && !stream.startsWith('sys-')) owners.set(stream, stringAt(metadata, 'tenant'));
    const one = new Map<string, { readonly foreign: Thing; readonly absent: Thing }>();
    for (const [stream, owner] of owners) {
      const { category: kind, id } = parseStreamName(stream);
      if (owner === 't1' || one.has(`${kind} ${owner}`)) continue;
      const other = Array.from('0123456789abcdef')
        .map((last) => id.slice(0, -1) + last)
        .find((each) => each.length === id.length && !owners.has(streamName(kind, each)));
      if (other === undefined) throw new Error(`there is no other id like ${id}`);
      one.set(`${kind} ${owner}`, { foreign: { kind, id }, absent: { kind, id: other } });
    }
    return [...one.values()];
  };

  /** An answer without what differs from call to call, whatever is asked. */
  const said = ({ status, text }: Reply, { id }: Thing): string =>
    `${status} ${text}`
      .replaceAll(id, 'ID')
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.[0-9a-z]+\b)?/g, 'UUID')
      .replaceAll(/\.\d{4}-\d\d-\d\d"/g, '.DAY"')
      .replaceAll(/\.\d{4}-\d\d-\d\d@/g, '.DAY@')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replaceAll(/"(index|position|revision|size)":("[^"]*"|\d+)/g, '"$1":N')
      .replaceAll(/"state":"\w+"/g, '"state":S')
      .replaceAll(/"next_cursor":"[^"]*"/g, '"next_cursor":C')
      .replaceAll(/@\d+"/g, '@N"');

  /** Of each look behind a position what it is, and which of its words are sealed: all that may be anybody's name. */
  const recordedBehind = async (after: string): Promise<string> => {
    const looks: string[] = [];
    for await (const event of stage.service.store.readAll({ after, limit: 10_000 })) {
      if (event.type !== 'AuditRead') continue;
      const query = Object.entries(objectAt(event.data, 'query'));
      const sealed = query.flatMap(([name, value]) => (isEncrypted(value) ? [name] : []));
      looks.push(
        `${stringAt(event.data, 'what')}: ${query.map(([name]) => name).join(' ')}, sealed: ${sealed.join(' ')}`,
      );
    }
    return looks.join('\n');
  };

  /** Asks for a thing in every way, and again when that is on record: what was asked, and the answer. */
  const asked = async (thing: Thing): Promise<readonly (readonly [string, string])[]> => {
    const { callerFor, settled } = stage;
    // Each as somebody new: only a few exports of one caller may wait.
    callers += 1;
    const user = `audrey-${callers}`;
    const auditor = await callerFor({ user, tenants: ['t1'], roles: ['auditor'] });
    const { kind } = thing;
    const [id, stream] = [thing.id, streamName(kind, thing.id)].map(encodeURIComponent) as [string, string];
    const answers: [string, string][] = [];
    const before = (await stage.service.store.lastPosition()) ?? '';
    const ask = async (path: string, body?: object): Promise<void> => {
      await settled(false);
      const reply = await auditor(body === undefined ? 'GET' : 'POST', `${AUDIT}/${path}`, body);
      answers.push([path.replaceAll(id, 'ID'), said(reply, thing).replaceAll(user, 'USER')]);
    };
    const lists = [
      `resources/${kind}/${id}/events`,
      `events?kind=${kind}&id=${id}`,
      `events?kind=${kind}&resource_id=${id}&type=AuditRead&order=desc`,
    ];
    const looks = [
      `resources/${kind}/${id}`,
      `resources/${kind}/${id}?as_of=${encodeURIComponent(new Date().toISOString())}`,
      `resources/${kind}/${id}/diff?from=2026-01-01T00:00:00Z`,
      ...lists,
      `events/${stream}@0`,
      `events/${stream}@0/proof`,
      `events/${id}`,
      `exports/${id}`,
    ];
    for (const path of looks) await ask(path);
    await ask(`events?type=AuditRead&limit=500&subject=${user}`);
    await ask('exports', { filter: { kind, resource_id: thing.id } });
    for (const path of [...lists, `events?subject=${id}`]) await ask(path);
    answers.push(['what is recorded', await recordedBehind(before)]);
    return answers;
  };

  it('answers as what never was, in all ways to ask, also once that was asked for', async () => {
    await fill();
    await stage.settled(false);
    const things = await othersThings();
    const kinds = things.map(({ foreign }) => foreign.kind);
    expect(kinds).to.include.members(['cluster', 'hub', 'tenant', 'user', 'secret', 'name', 'auditAccess']);
    expect(kinds).to.include.members(['auditExport', 'hostType']);
    for (const { foreign, absent } of things) {
      const [theirs, nothing] = [await asked(foreign), await asked(absent)];
      for (const [n, [path, answer]] of theirs.entries())
        expect(answer, `${JSON.stringify(foreign)} ${path}`).to.equal(nothing[n]?.[1]);
    }
  });
});
