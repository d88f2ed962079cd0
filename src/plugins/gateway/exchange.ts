import type { IncomingHttpHeaders } from 'node:http';
import type { Writable } from '../../core/kernel/writable.ts';
import type { Answer } from './mcp/answers.ts';
import type { Ending } from './stop.ts';
import type { CallFacts } from './telemetry/call-telemetry.ts';

type Facts = Writable<Pick<CallFacts, 'outcome' | 'tool'>>;

/** One request of a client and the way to answer it, whole or as a stream. */
export interface Exchange {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: IncomingHttpHeaders;
  readonly correlation: string;
  /** Aborted when the client leaves before its answer is whole. */
  readonly gone: Ending;
  /** Whether a part of the answer is out. */
  readonly begun: boolean;
  /** That the client was sent; undefined before. */
  readonly status: number | undefined;
  /** Bytes of the answer's body so far. */
  readonly bytes: number;
  /** Milliseconds since the request came. */
  readonly ms: number;
  /** What telemetry is told of it at its end, filled in as it becomes known. */
  readonly facts: Facts;
  /** Calls back once when the answer is whole, or the client gone. */
  onClose(listener: () => void): void;
  /** Sends a whole answer, unless one has begun. */
  send(answer: Answer): void;
  /** Begins an answer that comes in parts. */
  begin(status: number, headers: Readonly<Record<string, string>>): void;
  /** Sends what has begun though no part of the body is there yet. */
  flush(): void;
  /** Sends a part. @returns when a client that is slow has caught up; rejects when it leaves. It may be ignored */
  write(chunk: Buffer | string): Promise<void> | undefined;
  end(last?: Buffer | string): void;
  /** Breaks an answer off: the client sees that it is not whole. */
  cut(): void;
}
