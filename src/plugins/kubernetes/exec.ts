import { Writable } from 'node:stream';
import type { ExecOptions, ExecResult } from '../../core/contracts/kubernetes.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { Connection } from './connection.ts';

/** The most that is kept of what a command writes, bytes; a config that is longer is none that one should read this way. */
const LARGEST_OUTPUT = 4 * 1024 * 1024;

interface Target extends ExecOptions {
  readonly namespace: string;
  readonly pod: string;
}

/**
 * Runs a command in a container of a pod, without a shell and without input.
 *
 * @throws HF_KUBERNETES_CONFIG, HF_KUBERNETES_UNREACHABLE
 */
export async function runInPod(
  connection: Connection,
  { namespace, pod, container, signal }: Target,
  command: readonly string[],
): Promise<ExecResult> {
  const config = await connection.config();
  const { Exec } = await import('@kubernetes/client-node');
  return connection.deadline(signal, async (over) => {
    const ended = Promise.withResolvers<unknown>();
    const fail = (reason: string) => ended.reject(new Error(reason));
    const tooLong = () => fail(`the command wrote more than ${LARGEST_OUTPUT} bytes`);
    const output = new Kept(tooLong);
    const errors = new Kept(tooLong);
    const web = await new Exec(config)
      .exec(namespace, pod, container ?? '', [...command], output, errors, null, false, ended.resolve)
      .catch((error: unknown) => {
        throw new Error(reasonOf(error));
      });
    const close = () => web.close();
    over.addEventListener('abort', close, { once: true });
    // An outcome comes before the end of the connection, unless the pod has gone meanwhile.
    web.onclose = () => fail('the connection ended before the command did');
    web.onerror = () => fail('the connection broke off');
    try {
      const exitCode = exitCodeOf(await ended.promise);
      return { exitCode, output: output.text(), errors: errors.text() };
    } finally {
      over.removeEventListener('abort', close);
      close();
    }
  });
}

/** Keeps what is written to it, up to a limit. */
class Kept extends Writable {
  readonly #chunks: Buffer[] = [];
  #size = 0;

  constructor(tooLong: () => void) {
    super({
      write: (chunk: Buffer, _encoding, done) => {
        this.#size += chunk.length;
        if (this.#size > LARGEST_OUTPUT) tooLong();
        else this.#chunks.push(chunk);
        done();
      },
    });
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}

/** @param status as the API describes how the command ended: `Success`, or `Failure` with the exit code among its causes */
function exitCodeOf(status: unknown): number {
  const { status: end, details, message } = isObject(status) ? status : {};
  if (end === 'Success') return 0;
  const causes = isObject(details) && Array.isArray(details.causes) ? details.causes.filter(isObject) : [];
  const code = causes.find(({ reason }) => reason === 'ExitCode')?.message;
  if (code !== undefined && Number.isInteger(Number(code))) return Number(code);
  throw new Error(typeof message === 'string' ? message : 'it does not say how the command ended');
}

/** The client of WebSockets rejects with an event. */
function reasonOf(error: unknown): string {
  const { message } = isObject(error) ? error : { message: undefined };
  return typeof message === 'string' ? message : String(error);
}
