import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { SecretsStore } from '../../../core/contracts/secrets-store.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isConfigured, type Receiver, readTarget } from './target.ts';

/** Whether a receiver could be posted to now. */
export interface Reach {
  readonly state: 'reached' | 'unreached' | 'unusable' | 'unconfigured';
  /** Scheme and host; absent where no address is known. */
  readonly place?: string;
  /** Why not. */
  readonly reason?: string;
}

const DEADLINE_MS = 5_000;

/**
 * Connects to a receiver, with TLS where its address says so, and hangs up: nothing is sent, so nobody is alarmed.
 *
 * @param store where `urlSecret` and `tokenSecret` lie
 */
export async function reach(
  name: string,
  receiver: Receiver,
  env: NodeJS.ProcessEnv,
  store: SecretsStore | undefined,
  signal: AbortSignal,
): Promise<Reach> {
  if (!isConfigured(name, receiver, env)) return { state: 'unconfigured' };
  let url: URL;
  try {
    ({ url } = await readTarget(name, receiver, env, store));
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { state: 'unusable', reason: error.what };
  }
  const place = url.origin;
  const reason = await connectOnce(url, AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]));
  return reason === undefined ? { state: 'reached', place } : { state: 'unreached', place, reason };
}

/** @returns why it failed; undefined when it did not */
function connectOnce({ protocol, hostname, port }: URL, signal: AbortSignal): Promise<string | undefined> {
  const secure = protocol === 'https:';
  const host = hostname.replace(/^\[|\]$/g, '');
  const to = { host, port: Number(port) || (secure ? 443 : 80) };
  return new Promise((resolve) => {
    const servername = /^[\d.]+$|:/.test(host) ? '' : host;
    const socket = secure ? connectTls({ ...to, servername }) : connect(to);
    const end = (reason?: string) => {
      signal.removeEventListener('abort', late);
      socket.destroy();
      resolve(reason);
    };
    const late = () => end('it did not answer in time');
    signal.addEventListener('abort', late, { once: true });
    socket.once(secure ? 'secureConnect' : 'connect', () => end());
    socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.name));
    if (signal.aborted) late();
  });
}
