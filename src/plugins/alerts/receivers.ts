import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { z } from 'zod';
import type { SecretsStore } from '../../core/contracts/secrets-store.ts';
import { insecureOption, plaintextProblem, refusePlaintext } from '../../core/host/http/plaintext.ts';
import { parseSecretReference, secretReference } from '../../core/host/secrets/secret-reference.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { AlertsError } from './errors.ts';
import type { Format } from './payloads.ts';

/** A receiver of `plugins.config.ts`. Its address is a secret where it holds a token, as those of most webhooks do. */
export const receiverOptions = z
  .strictObject({
    format: z.enum(['json', 'ntfy', 'alertmanager', 'alertmanager-api']).default('json'),
    /** An address without a secret in it. */
    url: z.url({ protocol: /^https?$/ }).optional(),
    /** File of mode 0600 with the address. */
    urlFile: z.string().min(1).optional(),
    /** The address in the secrets store, `<path>#<property>`. */
    urlSecret: secretReference.optional(),
    /** File of mode 0600 with a bearer token. */
    tokenFile: z.string().min(1).optional(),
    tokenSecret: secretReference.optional(),
    /** Its token, and an address that is a secret, may go to another machine over `http://`. */
    insecure: insecureOption,
    /** Seconds from a first notice to its post: notices of that time share one post. */
    batchSeconds: z.number().min(0).max(300).default(2),
  })
  .refine(
    ({ url, urlFile, urlSecret }) =>
      [url, urlFile, urlSecret].filter((each) => each !== undefined).length <= 1,
    'give one of url, urlFile and urlSecret',
  )
  .superRefine(({ url, insecure, tokenFile, tokenSecret }, context) => {
    if (tokenFile === undefined && tokenSecret === undefined) return;
    refusePlaintext(context, { url, insecure, credential: 'its token' });
  });
export type Receiver = z.output<typeof receiverOptions>;

/** A receiver as it can be posted to now. */
export interface Target {
  readonly format: Format;
  readonly url: URL;
  readonly bearer?: string;
  /** Whether both may go to another machine in plaintext. */
  readonly insecure: boolean;
  /** Scheme and host, for people. */
  readonly place: string;
}

const STORE_MS = 5_000;

/** The variables that name a receiver's address, e.g. `HOLDFAST_ALERTS_CLUSTER_EDGE_URL`, or `…_URL_FILE`. */
export function variablesOf(name: string): { readonly url: string; readonly file: string } {
  const url = `HOLDFAST_ALERTS_${name.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}_URL`;
  return { url, file: `${url}_FILE` };
}

/** Whether an address is named at all. */
export function isConfigured(name: string, receiver: Receiver, env: NodeJS.ProcessEnv): boolean {
  const { url, file } = variablesOf(name);
  return [receiver.url, receiver.urlFile, receiver.urlSecret, env[url], env[file]].some(Boolean);
}

/**
 * Reads the address of a receiver. It is read for each use and not kept.
 *
 * @throws HF_ALERTS_RECEIVER it has no usable address
 */
export async function readTarget(
  name: string,
  receiver: Receiver,
  env: NodeJS.ProcessEnv,
  store: SecretsStore | undefined,
): Promise<Target> {
  const variables = variablesOf(name);
  const refuse = (reason: string, cause?: unknown): never => {
    throw new AlertsError(
      'HF_ALERTS_RECEIVER',
      { receiver: name, reason, variable: variables.url },
      { cause },
    );
  };
  const secret = async (reference: string): Promise<string> => {
    if (!store) return refuse('no plugin provides a secrets store');
    const { path, property } = parseSecretReference(reference);
    return store.read(path, property, AbortSignal.timeout(STORE_MS));
  };
  const address = async (): Promise<string | undefined> => {
    if (env[variables.url]) return env[variables.url];
    const file = env[variables.file] ?? receiver.urlFile;
    if (file) return readTokenFile(file);
    return receiver.urlSecret === undefined ? receiver.url : secret(receiver.urlSecret);
  };
  const token = async (): Promise<string | undefined> => {
    if (receiver.tokenFile !== undefined) return readTokenFile(receiver.tokenFile);
    return receiver.tokenSecret === undefined ? undefined : secret(receiver.tokenSecret);
  };
  const text = (await address().catch((error) => refuse('its address can not be read', error)))?.trim();
  const bearer = (await token().catch((error) => refuse('its token can not be read', error)))?.trim();
  if (!text) return refuse('no address is configured');
  const url = URL.canParse(text) ? new URL(text) : refuse('its address is no URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') refuse('its address is neither http nor https');
  if (url.username || url.password) refuse('its address holds a user; give a token by tokenFile');
  const { insecure = false } = receiver;
  const isSecret = receiver.url === undefined && !env[variables.url];
  if (isSecret || bearer !== undefined) {
    const credential = bearer === undefined ? 'its address, which is a secret,' : 'its token';
    const problem = plaintextProblem({ url: url.href, insecure, credential });
    if (problem !== undefined) refuse(problem);
  }
  return {
    format: receiver.format,
    insecure,
    url,
    place: url.origin,
    ...(bearer !== undefined && { bearer }),
  };
}

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
