import { expect } from 'chai';
import { jsonEvent } from '@eventstore/db-client';
import { eventually } from '../eventually.ts';
import { releaseOf, withClient, type Behaviour } from './server.ts';

/** What one connection is good for. */
export const connectionBehaviours: readonly Behaviour[] = [
  {
    name: 'says its release, which begins with its version',
    check: (server) =>
      withClient(server, async (client) => {
        expect(await releaseOf(client)).to.match(new RegExp(`^${server.version.replace('.', '\\.')}\\.\\d+`));
      }),
  },
  {
    name: 'answers the requests of two clients that use one connection string',
    check: (server) =>
      withClient(server, (one) =>
        withClient(server, async (other) => {
          const stream = server.unique('connection');
          await one.appendToStream(stream, jsonEvent({ type: 'Placed', data: { n: 1 } }));
          const seen: unknown[] = [];
          for await (const { event } of other.readStream(stream)) seen.push(event?.data);
          expect(seen).to.deep.equal([{ n: 1 }]);
        }),
      ),
  },
  {
    name: 'keeps what it answered over a restart, and the client connects again by itself',
    needs: ['restart'],
    check: (server) =>
      withClient(server, async (client) => {
        const stream = server.unique('restart');
        await client.appendToStream(stream, jsonEvent({ type: 'Placed', data: {} }));
        await server.restart?.();
        let types: string[] = [];
        await eventually('the stream is read again', async () => {
          try {
            types = [];
            for await (const { event } of client.readStream(stream)) types.push(event?.type ?? '');
            return true;
          } catch {
            return false;
          }
        });
        expect(types).to.deep.equal(['Placed']);
      }),
  },
];
