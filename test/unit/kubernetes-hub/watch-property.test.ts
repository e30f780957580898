import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { expect } from 'chai';
import fc from 'fast-check';
import { watchObjects } from '../../../src/adapters/management-cluster/kubernetes/watch.ts';
import { checkAsync } from '../../support/property.ts';
import { manualTime } from '../../support/manual-time.ts';
import { fakeHub } from './fake-hub.ts';

const MINUTE = 60_000;
const deed = fc.oneof(
  fc.record({
    do: fc.constantFrom('put', 'put-silently', 'remove', 'remove-silently', 'replace'),
    at: fc.nat(4),
  }),
  fc.record({
    do: fc.constantFrom(
      '410',
      '500',
      'cut',
      'refuse-410',
      'refuse-503',
      'garbage',
      'bookmark',
      'pass',
      'read',
    ),
    at: fc.nat(200_000),
  }),
);

describe('watch of the orders of a hub, whatever happens', () => {
  it('shows in the end what the hub holds; versions of an object rise and come once', () =>
    checkAsync(
      fc.asyncProperty(fc.array(deed, { maxLength: 60 }), fc.boolean(), async (deeds, readsAlways) => {
        const time = manualTime();
        const hub = fakeHub();
        const held = new Map<string, string>();
        const watch = watchObjects({
          api: hub.api,
          kind: CLUSTER_ORDER,
          namespace: 'osac-hub',
          timers: time.timers,
          random: () => 0.5,
          note: () => undefined,
        });
        const shown = new Map<string, string>();
        const last = new Map<string, number>();
        const faults: string[] = [];
        let reading = readsAlways;
        let resume = Promise.withResolvers<void>();
        const read = async (): Promise<void> => {
          for (;;) {
            if (!reading) await resume.promise;
            const events = await watch.next();
            if (events === undefined) return;
            for (const event of events) {
              if (event.type === 'synced') {
                const names = new Set(event.names);
                for (const name of shown.keys()) if (!names.has(name)) shown.delete(name);
                continue;
              }
              const { name, uid, resourceVersion } = event.object;
              if ((last.get(uid) ?? 0) >= Number(resourceVersion))
                faults.push(`${uid}@${resourceVersion} twice`);
              last.set(uid, Number(resourceVersion));
              if (event.type === 'deleted') shown.delete(name);
              else shown.set(name, `${uid}@${resourceVersion}`);
            }
          }
        };
        const ended = read();
        const remove = (name: string, silently: boolean): void => {
          hub.remove(name, silently);
          held.delete(name);
        };
        const put = (name: string, uid: string, silently: boolean): void => {
          if (silently) hub.putSilently(name, uid);
          else hub.put(name, uid);
          held.set(name, `${uid}@${hub.version()}`);
        };
        for (const [index, { do: what, at }] of deeds.entries()) {
          const name = `order-${at}`;
          const uid = held.get(name)?.split('@')[0] ?? `${name}-${index}`;
          if (what === 'put') put(name, uid, false);
          else if (what === 'put-silently') put(name, uid, true);
          else if (what === 'remove') remove(name, false);
          else if (what === 'remove-silently') remove(name, true);
          else if (what === 'replace') {
            remove(name, at % 2 === 0);
            put(name, `${name}-${index}`, false);
          } else if (what === '410') hub.errorInStream(410);
          else if (what === '500') hub.errorInStream(500);
          else if (what === 'cut') hub.cut(at % 2 === 0 ? undefined : new Error('reset'));
          else if (what === 'refuse-410') hub.refuseStream(410);
          else if (what === 'refuse-503') hub.refuseStream(503);
          else if (what === 'garbage')
            hub.line('{"type":"ADDED"}\n{"type":"MODIFIED","object":{}}\nnonsense\n');
          else if (what === 'bookmark') hub.bookmark();
          else if (what === 'read') reading = readsAlways || !reading;
          else await time.pass(at);
          if (reading) {
            resume.resolve();
            resume = Promise.withResolvers();
          }
          await time.pass(0);
        }
        reading = true;
        resume.resolve();
        await time.pass(20 * MINUTE);
        expect(Object.fromEntries(shown)).to.deep.equal(Object.fromEntries(held));
        expect(faults).to.deep.equal([]);
        watch.close();
        await ended;
      }),
      { numRuns: 40 },
    )).timeout(30_000);
});
