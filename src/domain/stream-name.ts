/**
 * Stream names: `<category>-<encoded id>`. Ids outside `[A-Za-z0-9._-]{1,100}` are encoded reversibly:
 * `~` followed by base64url of the UTF-8 text, which no plain id can start with.
 */
const CATEGORY = /^[a-z][a-zA-Z0-9]*$/;
const PLAIN_ID = /^[A-Za-z0-9._-]{1,100}$/;

export const streamName = (category: string, id: string): string => {
  if (!CATEGORY.test(category)) throw new TypeError(`"${category}" is not a stream category`);
  return `${category}-${encodeId(id)}`;
};

export const encodeId = (id: string): string =>
  PLAIN_ID.test(id) ? id : `~${Buffer.from(id, 'utf8').toString('base64url')}`;

export const decodeId = (encoded: string): string =>
  encoded.startsWith('~') ? Buffer.from(encoded.slice(1), 'base64url').toString('utf8') : encoded;

/** Splits a stream name at its first hyphen. */
export const parseStreamName = (stream: string): { category: string; id: string } => {
  const at = stream.indexOf('-');
  if (at < 0) return { category: stream, id: '' };
  return { category: stream.slice(0, at), id: decodeId(stream.slice(at + 1)) };
};
