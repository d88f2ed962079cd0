import { type IncomingMessage, request } from 'node:http';
import { nearPath } from './addresses.ts';

/** One request through a Unix socket, by Node's own client: each has a connection of its own, which costs next to nothing. */
export function sendBySocket(
  socketPath: string,
  {
    method,
    path,
    headers,
    body,
    signal,
    idleTimeoutMs,
  }: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string | Uint8Array;
    readonly signal: AbortSignal;
    /** The longest pause, milliseconds; no limit at 0. */
    readonly idleTimeoutMs: number;
  },
) {
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  return new Promise<ReturnType<typeof answerOf>>((resolve, reject) => {
    const sent = request(
      {
        ...{ socketPath: nearPath(socketPath), agent: false, method, path, signal },
        headers: { host: 'localhost', ...length, ...headers },
      },
      (answer) => resolve(answerOf(answer)),
    ).on('error', reject);
    sent.setTimeout(idleTimeoutMs, () => sent.destroy(new Error('nothing came any more')));
    sent.end(body);
  });
}

function answerOf(answer: IncomingMessage) {
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    body: answer as AsyncIterable<Uint8Array>,
    discard: () => void answer.on('error', () => {}).destroy(),
  };
}
