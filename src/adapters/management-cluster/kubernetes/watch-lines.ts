import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isObject } from '../../../domain/json-tools.ts';

/** The stream cannot be read on: a line that is not JSON or has no end. */
export class UnreadableWatch extends Error {
  override readonly name = 'UnreadableWatch';
}

/** An object with a pull secret and long status is below 1 MiB, what an API server stores at most about 1.5 MiB. */
const MAX_LINE_BYTES = 8_388_608;
const NEWLINE = 0x0a;

/**
 * Lines of a watch, each a JSON object with its size in bytes. What is left when the stream ends in the middle of a
 * line is dropped: that connection was cut, and the event comes again. Throws UnreadableWatch.
 */
export async function* watchLines(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<{ readonly value: JsonObject; readonly bytes: number }> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, end)]);
      parts = [];
      length = 0;
      from = end + 1;
      if (line.length > 0) yield { value: parsed(line), bytes: line.length };
    }
    if (from < chunk.length) {
      parts.push(chunk.subarray(from));
      length += chunk.length - from;
    }
    if (length > MAX_LINE_BYTES) throw new UnreadableWatch(`a line has more than ${MAX_LINE_BYTES} bytes`);
  }
}

const parsed = (line: Buffer): JsonObject => {
  try {
    const value = JSON.parse(line.toString('utf8')) as JsonValue;
    if (isObject(value)) return value;
  } catch {
    // Said below; the parser's own message quotes the line.
  }
  throw new UnreadableWatch('a line is not a JSON object');
};
