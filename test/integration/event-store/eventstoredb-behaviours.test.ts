import type { ServerVersion } from '../../support/eventstoredb-peer/context.ts';
import { eventStoreDbBehaviours } from '../../support/event-store/eventstoredb-behaviours.ts';
import {
  PLAYED_VERSIONS,
  peerUnderTest,
  realServerUnderTest,
  reasonNotToRun,
  type ServerUnderTest,
} from '../../support/eventstoredb-conformance/server.ts';
import { notRunHere } from '../../support/not-run-here.ts';

/**
 * What our adapter relies on in an EventStoreDB, checked with the library's own client: on the peer, which plays three
 * versions, and on the real server that LEDGER_TEST_EVENTSTOREDB names. What fails on one of them only is a fault of
 * the peer.
 */
const behaviours = await eventStoreDbBehaviours();

/** `version`: where it is known before the server is asked, what other versions do is left out of the list. */
const describeBehaviours = (
  title: string,
  start: () => Promise<ServerUnderTest>,
  version?: ServerVersion,
): void => {
  describe(title, function () {
    this.timeout(120_000);
    let server: ServerUnderTest;
    before(async () => {
      server = await start();
    });
    after(() => server?.close());

    for (const [part, list] of behaviours)
      describe(part, () => {
        for (const behaviour of list) {
          if (version !== undefined && behaviour.versions?.includes(version) === false) continue;
          it(behaviour.name, async function () {
            const reason = reasonNotToRun(behaviour, server);
            if (reason !== undefined)
              notRunHere(this, 'eventstoredb-controls', `${behaviour.name}: ${reason}`);
            await behaviour.check(server);
          });
        }
      });
  });
};

for (const version of PLAYED_VERSIONS)
  describeBehaviours(
    `EventStoreDB behaves so: the peer as ${version}`,
    () => peerUnderTest(version),
    version,
  );

const real = process.env['LEDGER_TEST_EVENTSTOREDB'] ?? '';
if (real === '')
  describe('EventStoreDB behaves so: against a real server', () => {
    it('is not run here', function () {
      notRunHere(this, 'eventstoredb', 'LEDGER_TEST_EVENTSTOREDB holds no connection string');
    });
  });
else describeBehaviours('EventStoreDB behaves so: against a real server', () => realServerUnderTest(real));
