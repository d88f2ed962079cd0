import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { Heartbeat, PushAnswer, UptimeMonitor } from '../../core/contracts/uptime.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { HoldfastError, isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { failure, judge, READ_LIMIT, scrub } from './answer.ts';
import { parseAddress } from './options.ts';

export interface PushClientParts {
  /** Base of the monitor as it is now; undefined when there is none. */
  readonly base: () => string | undefined;
  /** An IP address, with or without a port, to connect to in place of the URL's. */
  readonly connect?: string | undefined;
  readonly caFile?: string | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** @throws HF_UPTIME_TOKEN */
  readonly token: (monitor: string) => Promise<string>;
}

/** What is sent of a message, characters: monitors keep 250. */
const MSG_LIMIT = 250;

const HEADER_LIMIT = 500;
const DAY_MS = 86_400_000;

export interface PushSeen {
  readonly answer: PushAnswer;
  /** `name: value`, without the token. */
  readonly headers: readonly string[];
}

/** Pushes beats over HTTP: one connection a push, never a redirect, for the token is in the path (R27, O15). */
export class PushClient implements UptimeMonitor {
  readonly #parts: PushClientParts;

  constructor(parts: PushClientParts) {
    this.#parts = parts;
  }

  get place(): string {
    return this.#parts.base() ?? 'no uptime monitor';
  }

  /** @inheritDoc */
  async push(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushAnswer> {
    return (await this.send(monitor, beat, signal)).answer;
  }

  /** A push with the headers of its answer, for who looks for a fault. @throws HF_UPTIME_TOKEN */
  async send(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushSeen> {
    const { base, token: tokenOf, timeoutMs, clock } = this.#parts;
    const token = await tokenOf(monitor);
    const url = base();
    if (url === undefined) {
      const reason = 'the embedded uptime monitor does not listen (yet)';
      return { answer: { kind: 'failed', reason, exitStatus: 4 }, headers: [] };
    }
    const over = new AbortController();
    const cancel = clock.after(timeoutMs, () => over.abort(timeout()));
    const giveUp = () => over.abort(signal?.reason);
    signal?.addEventListener('abort', giveUp, { once: true });
    if (signal?.aborted) giveUp();
    let agent: Agent | undefined;
    try {
      agent = this.#agent(new URL(url));
      const { origin, pathname } = new URL(url);
      const path = `${pathname.replace(/\/*$/, '')}/api/push/${encodeURIComponent(token)}?${queryOf(beat)}`;
      const answer = await agent.request({
        origin,
        path,
        method: 'GET',
        headers: { accept: 'application/json', 'user-agent': 'holdfast' },
        reset: true,
        signal: over.signal,
      });
      const headers = Object.entries(answer.headers).map(
        ([name, value]) => `${name}: ${scrub(String(value), token, HEADER_LIMIT)}`,
      );
      return { answer: judge(answer.statusCode, await textOf(answer.body), token), headers };
    } catch (error) {
      if (isCoded(error)) throw error;
      return { answer: failure(over.signal.aborted ? over.signal.reason : error, timeoutMs), headers: [] };
    } finally {
      cancel();
      signal?.removeEventListener('abort', giveUp);
      agent?.destroy().catch(() => {});
    }
  }

  #agent(url: URL): Agent {
    const { connect, caFile, timeoutMs } = this.#parts;
    const connector = buildConnector({
      timeout: timeoutMs,
      ...(caFile !== undefined && { ca: authority(caFile) }),
    });
    const address = connect === undefined ? undefined : parseAddress(connect);
    const name = url.hostname.replace(/^\[|\]$/g, '');
    return new Agent({
      connect: (target, callback) => {
        if (!address) return connector(target, callback);
        // The name asked for stays the URL's, in the Host header and in the certificate.
        const servername = target.servername ?? (isIP(name) === 0 ? name : undefined);
        const port = address.port === undefined ? target.port : String(address.port);
        const to = { ...target, hostname: address.host, host: address.host, port };
        return connector(servername === undefined ? to : { ...to, servername }, callback);
      },
      // The deadline of the whole push is ours.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }
}

function queryOf({ status, msg, ping, probe }: Heartbeat): string {
  const query = new URLSearchParams({ status, msg: msg.slice(0, MSG_LIMIT) });
  // A monitor that is too strict with it must not cost the beat: newer Uptime Kumas take a day at most.
  if (ping !== undefined) query.set('ping', String(Math.min(Math.max(0, Math.round(ping)), DAY_MS)));
  if (probe === true) query.set('probe', '1');
  return query.toString();
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= READ_LIMIT) break;
  }
  return Buffer.concat(chunks).toString('utf8').slice(0, READ_LIMIT);
}

function authority(caFile: string): string {
  try {
    return readFileSync(caFile, 'utf8');
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
    throw new HoldfastError('HF_CONFIG_SECRET_MISSING', { file: caFile, reason }, { cause: error });
  }
}

function timeout(): Error {
  return Object.assign(new Error('no answer in time'), { code: 'TIMEOUT' });
}
