import type { IngestKeys } from '../../../core/contracts/ingest-keys.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Signal } from '../decode/decode.ts';
import { OtlpError } from '../errors.ts';
import type { Body, Intake } from '../intake.ts';
import type { Failure } from '../spool/protocol.ts';

/** What a collector answers to a request without a key; clients and probes look for this text. */
const KEY_MISSING = 'missing or empty authorization header: Authorization';

/** gRPC's codes of what a request can end with. */
const GRPC = {
  invalid: 3,
  late: 4,
  exhausted: 8,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

const PRESSED_SECONDS = 1;
const STUCK_SECONDS = 30;

/** Why a request is not taken, for either protocol. */
export interface Refusal {
  /** For metrics: one of a small set. */
  readonly reason: string;
  readonly status: number;
  readonly grpc: number;
  readonly message: string;
  /** Whole seconds after which to try again; absent when that would change nothing. */
  readonly retrySeconds?: number;
}

/** How a body that was taken is answered. */
export interface Accepted {
  readonly refused: number;
  /** Why so many items were refused; empty when none was. */
  readonly message: string;
}

export type Answer = { readonly accepted: Accepted } | { readonly refusal: Refusal };

export interface ReceiverParts {
  readonly intake: Intake;
  readonly budget: Budget;
  readonly keys: () => IngestKeys | undefined;
  /** Why nothing is taken now; undefined while something is. */
  readonly shut: () => string | undefined;
  readonly counted: {
    taken(signal: Signal, rows: number, refused: number): void;
    turnedAway(refusal: Refusal): void;
  };
}

/** What both protocols share: who may send, how much at once, and what the answers say. */
export class Receiver {
  readonly #parts: ReceiverParts;

  constructor(parts: ReceiverParts) {
    this.#parts = parts;
  }

  /**
   * Judges a request by its header alone.
   *
   * @param presented the whole value of `authorization`
   * @param producer the address it comes from
   */
  turnAway(presented: string | undefined, producer: string): Refusal | undefined {
    const refusal = this.#unknown(presented, producer) ?? this.#shut();
    if (refusal) this.#parts.counted.turnedAway(refusal);
    return refusal;
  }

  /** Sets memory aside for a body. @param bytes as far as they are known */
  share(bytes: number): Share | Refusal {
    return this.#parts.budget.share(bytes) ?? this.refuse(new OtlpError('HF_OTLP_PRESSED'));
  }

  /** Refuses what is known to be too large or too slow, or finds no room; it is counted. */
  refuse(error: HoldfastError): Refusal {
    const refusal = refusalOf(error);
    this.#parts.counted.turnedAway(refusal);
    return refusal;
  }

  /** @param presented the key it came with, which its services are now known to use */
  async take(body: Body, presented: string): Promise<Answer> {
    const outcome = await this.#parts.intake.take(body);
    if (outcome.kind !== 'taken') return { refusal: this.#failed(outcome) };
    const { rows, refused, reasons, services } = outcome;
    this.#parts.counted.taken(body.signal, rows, refused);
    for (const service of services) this.#parts.keys()?.judge(presented, service);
    return { accepted: { refused, message: refused === 0 ? '' : worded(refused, reasons) } };
  }

  #failed(outcome: Failure): Refusal {
    switch (outcome.kind) {
      case 'invalid':
        return this.refuse(new OtlpError('HF_OTLP_BODY_INVALID', { reason: outcome.reason }));
      case 'too-large':
        return this.refuse(new OtlpError('HF_OTLP_BODY_TOO_LARGE'));
      case 'full':
        return this.refuse(new OtlpError('HF_OTLP_STUCK', { reason: 'the spool is full' }));
      case 'disk':
        return this.refuse(new OtlpError('HF_OTLP_STUCK', { reason: `the disk refuses: ${outcome.reason}` }));
      case 'lost':
        return this.refuse(new OtlpError('HF_OTLP_LOST', { reason: outcome.reason }));
    }
  }

  #shut(): Refusal | undefined {
    const reason = this.#parts.shut();
    return reason === undefined ? undefined : refusalOf(new OtlpError('HF_OTLP_STUCK', { reason }));
  }

  #unknown(presented: string | undefined, producer: string): Refusal | undefined {
    if (presented === undefined || presented.trim() === '') {
      return { reason: 'key_missing', status: 401, grpc: GRPC.unauthenticated, message: KEY_MISSING };
    }
    const keys = this.#parts.keys();
    if (!keys) return refusalOf(new OtlpError('HF_OTLP_NO_KEYS'));
    switch (keys.judge(presented, producer).kind) {
      case 'accepted':
        return undefined;
      case 'prefixed':
        return refusalOf(new OtlpError('HF_OTLP_KEY_PREFIXED'));
      case 'vestigial':
        return refusalOf(new OtlpError('HF_OTLP_KEY_VESTIGIAL'));
      case 'unknown':
        return refusalOf(new OtlpError('HF_OTLP_KEY_UNKNOWN'));
    }
  }
}

function refusalOf({ code, status, what, remedy }: HoldfastError): Refusal {
  return {
    reason: code.replace(/^HF_(?:INGEST|HTTP)_/, '').toLowerCase(),
    status,
    grpc: grpcCode(status),
    message: `${what} ${remedy}`,
    ...(status === 429 && { retrySeconds: PRESSED_SECONDS }),
    ...(status === 503 && { retrySeconds: code === 'HF_OTLP_LOST' ? PRESSED_SECONDS : STUCK_SECONDS }),
  };
}

function grpcCode(status: number): number {
  if (status === 401) return GRPC.unauthenticated;
  if (status === 408) return GRPC.late;
  if (status === 413) return GRPC.exhausted;
  if (status === 429 || status === 503) return GRPC.unavailable;
  return status < 500 ? GRPC.invalid : GRPC.internal;
}

function worded(refused: number, reasons: Readonly<Record<string, number>>): string {
  const each = Object.entries(reasons).map(([reason, count]) => `${count}: ${reason}`);
  return `${refused} refused. ${each.join('; ')}.`;
}

/** The least that a request counts for, bytes: one that waits for its answer costs more than its body. */
const LEAST = 64 * 1024;

/** A request's share of the memory for bodies. */
export interface Share {
  /** @returns whether it can have so many bytes in all */
  grow(bytes: number): boolean;
  /** Once is enough, more do no harm. */
  release(): void;
}

/** Bounds the bytes of all bodies that are being received or wait for their answer. */
export class Budget {
  readonly #limit: number;
  #used = 0;

  /** @param limit bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** @returns undefined when there is no room for so many bytes */
  share(bytes: number): Share | undefined {
    let own = 0;
    const grow = (total: number): boolean => {
      const more = Math.max(total, LEAST) - own;
      if (more <= 0) return true;
      if (this.#used + more > this.#limit) return false;
      own += more;
      this.#used += more;
      return true;
    };
    const release = () => {
      this.#used -= own;
      own = 0;
    };
    return grow(bytes) ? { grow, release } : undefined;
  }
}

/** The little of protobuf that answers need: varints, and fields with a length. */

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

function numberField(number: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.concat([varint(number * 8), varint(value)]);
}

function bytesField(number: number, content: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

function textField(number: number, text: string): Buffer {
  return text === '' ? Buffer.alloc(0) : bytesField(number, Buffer.from(text));
}

/** `ExportPartialSuccess` inside of the response of any signal; both fields have the same numbers in all three. */
export function exportResponse(refused: number, message: string): Buffer {
  const partial = Buffer.concat([numberField(1, refused), textField(2, message)]);
  return partial.length === 0 ? partial : bytesField(1, partial);
}

/** `google.rpc.Status`, with a `RetryInfo` when it is worth trying again. @param retrySeconds whole seconds */
export function rpcStatus(code: number, message: string, retrySeconds?: number): Buffer {
  const parts = [numberField(1, code), textField(2, message)];
  if (retrySeconds !== undefined) {
    const retryInfo = bytesField(1, numberField(1, retrySeconds));
    const any = [textField(1, 'type.googleapis.com/google.rpc.RetryInfo'), bytesField(2, retryInfo)];
    parts.push(bytesField(3, Buffer.concat(any)));
  }
  return Buffer.concat(parts);
}
