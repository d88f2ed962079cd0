import type { IncomingMessage } from 'node:http';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { type ErrorData, HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { isObject } from '../../kernel/json.ts';
import { lockedBy } from '../../kernel/log/lock.ts';
import { HostError } from '../errors/host-error.ts';
import { controlSocket, nearPath } from '../http/addresses.ts';
import { readBody } from '../http/bounded-body.ts';
import { watchLife } from './signs-of-life.ts';

/** An `import` of node:http would load Node's fetch, too. */
const { request } = process.getBuiltinModule('node:http');
/** The longest answer of an operation, bytes. */
const LARGEST_ANSWER = 256 * 1024 * 1024;

/** Which instance a command asks, and until when; a command's context is one. */
export interface InstanceAddress {
  readonly dataDir: string;
  readonly signal: AbortSignal;
  /** By which it is given up; that of the system unless set. */
  readonly clock?: Clock;
}

/**
 * Asks the instance that runs on the data folder.
 *
 * @param path as `serveOperation` serves it
 * @param missing what is wrong when it has no such operation, e.g. `it runs no lamp`; or the error that says so
 * @returns its answer, a JSON object; its shape is not checked, because the same program made it
 * @throws HF_CONTROL_UNREACHABLE none runs there, or it has no such operation and `missing` is a text
 * @throws HF_CONTROL_SILENT it is frozen; and whatever code the operation refused with
 */
export async function askInstance<T extends object>(
  { dataDir, signal, clock }: InstanceAddress,
  path: string,
  body: object,
  missing: string | HoldfastError,
): Promise<T> {
  const { status, body: parsed } = await postControl(dataDir, path, body, signal, clock);
  const answer: { what?: unknown } = isObject(parsed) ? parsed : {};
  if (status >= 200 && status < 300) return answer as T;
  if (isErrorData(answer)) throw HoldfastError.fromData(answer);
  if (status === 404 && typeof missing !== 'string') throw missing;
  const { what } = answer;
  const words = typeof what === 'string' ? what.replace(/\.$/, '') : `it answered ${status}`;
  throw new HostError('HF_CONTROL_UNREACHABLE', {
    dir: dataDir,
    reason: status === 404 ? String(missing) : words,
  });
}

/** As `askInstance`, for work that a command can also do itself. @returns undefined when no instance runs on the data folder */
export async function askIfRunning<T extends object>(
  instance: InstanceAddress,
  path: string,
  body: object,
  missing: string,
): Promise<T | undefined> {
  return lockedBy(instance.dataDir) === undefined ? undefined : askInstance<T>(instance, path, body, missing);
}

function isErrorData(answer: object): answer is ErrorData {
  return 'details' in answer && 'code' in answer && String(answer.code).startsWith('HF_');
}

/** Who runs the command, for records of what people did. */
export function operatorName(): string {
  return process.env.SUDO_USER ?? process.env.USER ?? process.env.LOGNAME ?? 'operator';
}

/** What an instance answered on its control socket. */
export interface ControlAnswer {
  readonly status: number;
  /** Parsed JSON. */
  readonly body: unknown;
}

/**
 * Posts to the instance that runs on a data folder, through its control socket: how a command writes. By Node's own
 * client: a unix socket and nothing else is spoken to, and the package undici would double what a short command loads.
 *
 * Work may take as long as it takes, while the instance gives other answers. One that gives none is given up.
 *
 * @throws HF_CONTROL_UNREACHABLE nothing runs there, or it may not be spoken to
 * @throws HF_CONTROL_SILENT it has answered nothing for 15 s
 */
export async function postControl(
  dataDir: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<ControlAnswer> {
  const pid = lockedBy(dataDir);
  if (pid === undefined) throw unreachable(dataDir, 'nothing runs there');
  const text = JSON.stringify(body);
  const socketPath = nearPath(controlSocket(dataDir));
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        socketPath,
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
        readAnswer(answer, dataDir).then(resolve, reject);
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (signal.aborted) return reject(signal.reason);
      reject(unreachable(dataDir, reasons[error.code ?? ''] ?? error.code ?? error.message));
    });
    sent.end(text);
    const end = watchLife(socketPath, clock, (seconds) => {
      reject(new HostError('HF_CONTROL_SILENT', { dir: dataDir, pid, seconds }));
      sent.destroy();
    });
    sent.once('close', end);
  });
}

async function readAnswer(answer: IncomingMessage, dataDir: string): Promise<ControlAnswer> {
  const { bytes } = await readBody(answer, LARGEST_ANSWER);
  const status = answer.statusCode ?? 0;
  if (bytes.length === 0) return { status, body: undefined };
  try {
    return { status, body: JSON.parse(bytes.toString('utf8')) };
  } catch {
    throw unreachable(dataDir, 'its answer is not JSON');
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it has no control socket (yet)',
  ECONNREFUSED: 'nobody listens on its control socket',
  EACCES: 'its control socket belongs to another user',
};

function unreachable(dir: string, reason: string): HoldfastError {
  return new HostError('HF_CONTROL_UNREACHABLE', { dir, reason });
}
