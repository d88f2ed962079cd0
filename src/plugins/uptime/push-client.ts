import { readFileSync } from 'node:fs';
import type { Heartbeat, PushAnswer, PushEvent, UptimeMonitor } from '../../core/contracts/uptime.ts';
import { HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { CoreError } from '../../core/kernel/errors/core-error.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { failure, judge, pushEventOf, READ_LIMIT, scrub } from './answer.ts';
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
/** The exit status of wget for a file that it cannot read: there is no token. */
const NO_TOKEN = 3;
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

  /** @inheritDoc */
  async pushEvent(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushEvent> {
    const { clock } = this.#parts;
    try {
      const answer = await this.push(monitor, beat, signal);
      return pushEventOf(answer, clock.now());
    } catch (error) {
      if (!isCoded(error)) throw error;
      const reason = error.what.replace(/\.$/, '');
      return { type: 'PUSH_FAILED', at: clock.now(), reason, exitStatus: NO_TOKEN };
    }
  }

  /** A push with the headers of its answer, for who looks for a fault. @throws HF_UPTIME_TOKEN */
  async send(monitor: string, beat: Heartbeat, signal?: AbortSignal): Promise<PushSeen> {
    const { base, token: tokenOf, timeoutMs } = this.#parts;
    const token = await tokenOf(monitor);
    const url = base();
    if (url === undefined) {
      const reason = 'the embedded uptime monitor does not listen (yet)';
      return { answer: { kind: 'failed', reason, exitStatus: 4 }, headers: [] };
    }
    const http = this.#client(url);
    try {
      const answer = await http.call({
        url: `/api/push/${encodeURIComponent(token)}?${queryOf(beat)}`,
        headers: { accept: 'application/json', 'user-agent': 'holdfast' },
        signal,
      });
      const headers = Object.entries(answer.headers).map(
        ([name, value]) => `${name}: ${scrub(String(value), token, HEADER_LIMIT)}`,
      );
      return { answer: judge(answer.status, answer.text(), token), headers };
    } catch (error) {
      if (isCoded(error) && !(error instanceof HttpCallError)) throw error;
      return { answer: failure(error, timeoutMs), headers: [] };
    } finally {
      await http.close();
    }
  }

  /** A new one for each push: the authority's file may have changed. @throws HF_CONFIG_SECRET_MISSING */
  #client(base: string): HttpClient {
    const { connect, caFile, timeoutMs, clock } = this.#parts;
    return new HttpClient({
      base,
      timeoutMs,
      connectTimeoutMs: timeoutMs,
      answerLimit: READ_LIMIT,
      excess: 'cut',
      keepAlive: false,
      clock,
      ca: caFile === undefined ? undefined : authority(caFile),
      connectTo: connect === undefined ? undefined : parseAddress(connect),
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

function authority(caFile: string): string {
  try {
    return readFileSync(caFile, 'utf8');
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
    throw new CoreError('HF_CONFIG_SECRET_MISSING', { file: caFile, reason }, { cause: error });
  }
}
