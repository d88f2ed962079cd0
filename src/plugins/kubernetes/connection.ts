import { readFileSync } from 'node:fs';
import type { KubeConfig } from '@kubernetes/client-node';
import { z } from 'zod';
import { withDeadline } from '../../core/host/deadline.ts';
import { hostOf } from '../../core/host/http/addresses.ts';
import { isLoopback } from '../../core/host/http/admission.ts';
import { type HttpAnswer, HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { type HoldfastError, isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import { KubernetesError } from './errors.ts';

/** Times are milliseconds, sizes bytes. */
export const kubernetesOptions = z.strictObject({
  /** Path of a kubeconfig; without it, the account that a pod is given. */
  kubeconfig: z.string().min(1).optional(),
  /** A context of it to use instead of its current one. */
  context: z.string().min(1).optional(),
  /** Until a call is given up. */
  timeoutMs: z.int().min(100).max(120_000).default(15_000),
  /** Largest answer that is read. */
  answerLimit: z
    .int()
    .min(1_024)
    .default(16 * 1024 * 1024),
});

export type KubernetesOptions = z.output<typeof kubernetesOptions>;

/** An answer of the API. */
export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

const IN_CLUSTER = "the pod's own account";

/** HTTP with one API server, with the credentials of a kubeconfig; redirects are never followed, answers are bounded. */
export class Connection {
  readonly #options: KubernetesOptions;
  readonly #clock: Clock;
  readonly #http: HttpClient;
  #loaded: Promise<KubeConfig> | undefined;
  /** The login program that runs now. */
  #login: Promise<void> | undefined;
  /** The server, for people; until the kubeconfig is loaded, its file. */
  place: string;

  constructor(options: KubernetesOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    const { timeoutMs, answerLimit } = options;
    this.#http = new HttpClient({ timeoutMs, answerLimit, clock });
    this.place = options.kubeconfig ?? IN_CLUSTER;
  }

  /** The library takes half a second and 60 MB, so the first call loads it. @throws HF_KUBERNETES_CONFIG */
  config(): Promise<KubeConfig> {
    this.#loaded ??= this.#load().catch((error: unknown) => {
      // A corrected file is to be read without a restart.
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  /** @throws HF_KUBERNETES_CONFIG, HF_KUBERNETES_UNREACHABLE */
  call({ method, path, body, signal }: Call): Promise<Answer> {
    return this.deadline(signal, async (over) => {
      const { headers, dispatcher, server } = await this.#credentials(method, path, over);
      const answer = await this.#http.call({
        method,
        url: `${server}${path}`,
        dispatcher,
        headers: {
          ...headers,
          accept: 'application/json',
          ...(body && method === 'PATCH' && { 'content-type': 'application/merge-patch+json' }),
        },
        json: body,
        signal: over,
      });
      return { status: answer.status, body: objectOf(answer) };
    });
  }

  /**
   * Runs work within the deadline of a call, and aborts it then.
   *
   * @throws HF_KUBERNETES_UNREACHABLE with the reason, for an error of `work` that has no code
   */
  async deadline<T>(signal: AbortSignal | undefined, work: (over: AbortSignal) => Promise<T>): Promise<T> {
    const { timeoutMs } = this.#options;
    const late = () => new Error(`nothing came within ${timeoutMs / 1_000} s`);
    try {
      // A login program does not react to the signal.
      return await withDeadline({ ms: timeoutMs, clock: this.#clock, late, signal }, work);
    } catch (error) {
      if (isCoded(error) && !(error instanceof HttpCallError)) throw error;
      const reason = signal?.aborted ? 'it was cancelled' : reasonOf(error);
      throw new KubernetesError('HF_KUBERNETES_UNREACHABLE', { place: this.place, reason }, { cause: error });
    }
  }

  /** Read at each call, because the tokens of pods and of login programs change. */
  async #credentials(method: Call['method'], path: string, over: AbortSignal) {
    const config = await this.config();
    const { HttpMethod, ServerConfiguration } = await import('@kubernetes/client-node');
    const server = String(config.getCurrentCluster()?.server).replace(/\/+$/, '');
    const context = new ServerConfiguration(server, {}).makeRequestContext(path, HttpMethod[method]);
    // Login programs run one at a time: one that hangs must not be started again by each call.
    while (this.#login !== undefined) await this.#login;
    over.throwIfAborted();
    const login = config.applySecurityAuthentication(context);
    const { exec, authProvider } = config.getCurrentUser() ?? {};
    const runsProgram = exec !== undefined || authProvider !== undefined;
    if (runsProgram) {
      this.#login = login
        .catch(() => {})
        .finally(() => {
          this.#login = undefined;
        });
    }
    try {
      await login;
    } catch (error) {
      throw this.#unusable(runsProgram ? loginFault(error) : reasonOf(error));
    }
    return { headers: context.getHeaders(), dispatcher: context.getDispatcher(), server };
  }

  async #load(): Promise<KubeConfig> {
    const { kubeconfig, context } = this.#options;
    const { KubeConfig } = await import('@kubernetes/client-node');
    const config = new KubeConfig();
    try {
      if (kubeconfig === undefined) config.loadFromCluster();
      else {
        readFileSync(kubeconfig);
        config.loadFromFile(kubeconfig);
      }
      if (context !== undefined) config.setCurrentContext(context);
    } catch (error) {
      throw this.#unusable(fileFault(error));
    }
    const server = config.getCurrentCluster()?.server;
    if (server === undefined) throw this.#unusable(`it has no context ${context ?? config.currentContext}`);
    if (!URL.canParse(server)) throw this.#unusable('its server is no URL');
    const url = new URL(server);
    if (url.protocol !== 'https:' && !isLoopback(hostOf(url))) {
      throw this.#unusable(`its server ${url.host} is beyond this machine and not reached by https`);
    }
    this.place = `${url.protocol}//${url.host}`;
    return config;
  }

  #unusable(reason: string): HoldfastError {
    return new KubernetesError('HF_KUBERNETES_CONFIG', {
      file: this.#options.kubeconfig ?? IN_CLUSTER,
      reason,
    });
  }
}

/** A proxy may answer an error in any form; an answer of success must be a JSON object. */
function objectOf(answer: HttpAnswer): Record<string, unknown> {
  const body = answer.json();
  if (isObject(body)) return body;
  if (answer.status < 400) throw new Error(`HTTP ${answer.status} without a JSON object`);
  return {};
}

/** The parser's own message quotes the lines before the error, which may hold tokens and keys. */
function fileFault(error: unknown): string {
  if ((error as Error).name !== 'YAMLException') return reasonOf(error);
  const { mark } = error as { mark?: { line?: number } };
  return mark?.line === undefined ? 'it is no YAML' : `it is no YAML at line ${mark.line + 1}`;
}

/** The output of a login program may hold the token, so it is never repeated. */
function loginFault(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== undefined) return `the login program of its user cannot be run (${code})`;
  return error instanceof SyntaxError
    ? 'the login program of its user answered no JSON'
    : 'the login program of its user failed; run it by hand to see why';
}

/** @returns a part of a sentence */
function reasonOf(error: unknown): string {
  if (error instanceof HttpCallError) return error.reason;
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined || error.message.includes(code) ? error.message : `${error.message} (${code})`;
}
