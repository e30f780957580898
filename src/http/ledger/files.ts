import { ApiError } from '../errors.ts';
import { send, writeAll, type HttpExchange } from '../exchange.ts';

/** A file that is answered whole or in part, so that a download that broke off can be resumed (RFC 9110 §14). */
export type ServedFile = {
  readonly bytes: number;
  readonly contentType: string;
  /** Strong tag, with its quotes. */
  readonly etag: string;
  /** What the file is called when it is saved: letters, digits, dots and hyphens. */
  readonly name: string;
  /**
   * Called once before the answer begins; `handsOut`: whether it is going to have bytes of the file, which answers to HEAD and
   * to who has the file already have not. Throws what is answered instead.
   */
  readonly before?: (handsOut: boolean) => Promise<void>;
  /** Bytes [from, to). */
  readonly read: (from: number, to: number) => AsyncIterable<Uint8Array>;
};

type Part = { readonly from: number; readonly to: number };

/** A failure in the middle ends the connection: whoever asks again for the rest gets it. */
export const sendFile = async (exchange: HttpExchange, file: ServedFile): Promise<void> => {
  const { request, response, requestId } = exchange;
  const common = {
    etag: file.etag,
    'accept-ranges': 'bytes',
    'cache-control': 'no-store',
    'content-type': file.contentType,
    'content-disposition': `attachment; filename="${file.name}"`,
  };
  if (request.headers['if-none-match'] === file.etag) {
    await file.before?.(false);
    send(exchange, 304, '', common);
    return;
  }
  const part = partOf(request.headers, file);
  const { from, to } = part ?? { from: 0, to: file.bytes };
  await file.before?.(request.method !== 'HEAD');
  response.writeHead(part === undefined ? 200 : 206, {
    ...common,
    'content-length': String(to - from),
    'x-request-id': requestId,
    ...(part === undefined ? {} : { 'content-range': `bytes ${from}-${to - 1}/${file.bytes}` }),
  });
  try {
    await writeAll(exchange, file.read(from, to));
  } catch (error) {
    if (!exchange.signal().aborted) exchange.failure = error;
    response.destroy();
  }
};

/** Undefined: the whole file. Several ranges at once are answered with the whole. Throws ApiError 416. */
const partOf = (
  headers: HttpExchange['request']['headers'],
  { bytes, etag }: ServedFile,
): Part | undefined => {
  const condition = headers['if-range'];
  if (headers.range === undefined || (condition !== undefined && condition !== etag)) return undefined;
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(headers.range) ?? [];
  if (first === '' && last === '') return undefined;
  const from = first === '' ? Math.max(0, bytes - Number(last)) : Number(first);
  const to = first === '' || last === '' ? bytes : Math.min(bytes, Number(last) + 1);
  if (from < to) return { from, to };
  throw new ApiError('RANGE_NOT_SATISFIABLE', `the file has ${bytes} bytes: there is nothing in that range`, {
    headers: { 'content-range': `bytes */${bytes}` },
  });
};
