import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { textAt, type Json, type TestService } from './service.ts';

/** A watch as a client sees it: whatever came, line by line, and waiting for what is to come. */
export type Watching = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The body so far. */
  readonly text: () => string;
  /** Whole lines of JSON so far; of Server-Sent Events those of their data. */
  readonly lines: () => readonly Json[];
  readonly events: () => readonly Json[];
  /** Waits, bounded, until that many events have come. */
  readonly count: (events: number) => Promise<readonly Json[]>;
  /** Waits, bounded, until the far side ended the answer or broke it off. */
  readonly ended: () => Promise<void>;
  /** Reads no more, or again. */
  readonly pause: () => void;
  readonly resume: () => void;
  readonly close: () => void;
};

export const PRIVATE_WATCH = '/api/private/v1/events/watch';
export const PUBLIC_WATCH = '/api/events/v1/events';

const BOUND_MS = 10_000;

export const watch = async (
  service: Pick<TestService, 'url'>,
  token: string | undefined,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Watching> => {
  const sent = request(service.url + path, {
    agent: false,
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
  });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve).once('error', reject).end();
  });
  let text = '';
  let over = false;
  let noticed = (): void => {};
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    text += chunk;
    noticed();
  });
  const end = (): void => {
    over = true;
    noticed();
  };
  response.once('close', end).on('error', end);
  sent.on('error', end);

  const isSse = response.headers['content-type'] === 'text/event-stream';
  const lines = (): Json[] =>
    text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .flatMap((line) =>
        isSse ? (line.startsWith('data: ') ? [line.slice(6)] : []) : line === '' ? [] : [line],
      )
      .map((line) => JSON.parse(line) as Json);
  const events = (): Json[] =>
    lines().flatMap((line) => (line['result']?.['event'] === undefined ? [] : [line['result']['event']]));
  const until = async (what: string, reached: () => boolean): Promise<void> => {
    const deadline = performance.now() + BOUND_MS;
    while (!reached()) {
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`within ${BOUND_MS} ms there was no ${what}: ${text.slice(-2000)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        noticed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  };

  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: () => text,
    lines,
    events,
    count: async (wanted) => {
      await until(`${wanted} events`, () => events().length >= wanted || over);
      return events();
    },
    ended: () => until('end', () => over),
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    close: () => sent.destroy(),
  };
};

/** `CREATED cluster c1`: what most specs want to know of an event. */
export const summaryOf = (event: Json): string => {
  const { id: _id, type: _type, ...payload } = event;
  const [[field, object] = ['nothing', undefined]] = Object.entries(payload);
  const named = object?.['metadata']?.['name'] !== undefined; // a default project is not
  const name = named ? textAt(object, 'metadata', 'name') : '';
  return `${textAt(event, 'type').replace('EVENT_TYPE_OBJECT_', '')} ${field} ${name}`;
};
export const idOf = (event: Json | undefined): string => textAt(event, 'id');
