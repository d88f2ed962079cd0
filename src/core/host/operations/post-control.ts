import { request } from 'node:http';
import { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { lockedBy } from '../../kernel/log/lock.ts';
import { controlSocket, nearPath } from '../http/socket-path.ts';

/** What an instance answered on its control socket. */
export interface ControlAnswer {
  readonly status: number;
  /** Parsed JSON. */
  readonly body: unknown;
}

/**
 * Posts to the instance that runs on a data folder, through its control socket: how a command writes.
 *
 * @throws HF_CONTROL_UNREACHABLE nothing runs there, or it may not be spoken to
 */
export async function postControl(
  dataDir: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<ControlAnswer> {
  if (lockedBy(dataDir) === undefined) throw unreachable(dataDir, 'nothing runs there');
  const text = JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        socketPath: nearPath(controlSocket(dataDir)),
        method: 'POST',
        path,
        headers: {
          host: 'localhost',
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
        },
        signal,
      },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('error', reject);
        answer.on('end', () => {
          try {
            const said = Buffer.concat(parts).toString();
            resolve({ status: answer.statusCode ?? 0, body: said === '' ? undefined : JSON.parse(said) });
          } catch {
            reject(unreachable(dataDir, 'its answer is not JSON'));
          }
        });
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (signal.aborted) return reject(signal.reason);
      reject(unreachable(dataDir, reasons[error.code ?? ''] ?? error.code ?? error.message));
    });
    sent.end(text);
  });
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it has no control socket (yet)',
  ECONNREFUSED: 'nobody listens on its control socket',
  EACCES: 'its control socket belongs to another user',
};

function unreachable(dir: string, reason: string): HoldfastError {
  return new HoldfastError('HF_CONTROL_UNREACHABLE', { dir, reason });
}
