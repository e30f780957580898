import { Metadata, ServerInterceptingCall, status, type ServerInterceptor } from '@grpc/grpc-js';

/**
 * Lets in who names one of the users with the password that the user has now. A server looks at that when a call opens,
 * and not again while it lasts. Anybody may ask for its features and for gossip: clients send no user there.
 */
export const authentication =
  (users: ReadonlyMap<string, string>): ServerInterceptor =>
  ({ path }, call) =>
    new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, letIn) => {
            if (!path.startsWith('/event_store.client.streams.')) return letIn(metadata);
            const [header] = metadata.get('authorization');
            if (header === undefined) {
              const trailers = new Metadata();
              trailers.set('exception', 'access-denied');
              const denied = { code: status.PERMISSION_DENIED, details: 'Access Denied', metadata: trailers };
              return call.sendStatus(denied);
            }
            const encoded = header.toString().replace(/^Basic /, '');
            const [user = '', ...password] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
            if (users.get(user) !== password.join(':'))
              return call.sendStatus({ code: status.UNAUTHENTICATED, details: 'Bad HTTP status: 401' });
            letIn(metadata);
          },
        }),
    });
