import type { IngestKeys } from '../../../core/contracts/ingest-keys.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Signal } from '../decode/decode.ts';
import { OtlpError } from '../errors.ts';
import type { Body, Intake } from '../intake.ts';
import type { Failure } from '../spool/protocol.ts';

/** What a collector answers to a request without a key; clients and probes look for this text. */
const KEY_MISSING = 'missing or empty authorization header: Authorization';

/** The gRPC status codes of refusals. */
const GRPC = {
  invalid: 3,
  late: 4,
  exhausted: 8,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

const FLOOD = 'HF_HTTP_BUDGET';

/** When a client should try again: after an overload or a restart of the thread, and when nothing can be kept. */
const SOON_SECONDS = 1;
const LATER_SECONDS = 30;

/** Why a request is not taken, for either protocol. */
export interface Refusal {
  /** For metrics: one of a small set. */
  readonly reason: string;
  /** HTTP status. */
  readonly status: number;
  readonly grpc: number;
  readonly message: string;
  /** Whole seconds after which to try again; absent when that would change nothing. */
  readonly retrySeconds?: number;
  /** Its peer makes too many requests without a key: nothing of it is read. */
  readonly isFlood?: boolean;
}

/** What became of a body that was taken. */
export interface Accepted {
  /** Items of it that were not. */
  readonly refused: number;
  /** Why; empty when none was. */
  readonly message: string;
}

export interface ReceiverDependencies {
  readonly intake: Intake;
  readonly budget: BodyBudget;
  readonly keys: () => IngestKeys | undefined;
  /** Counts a caller without a known key by its address. @returns the refusal when its peer makes too many requests */
  readonly strangerRefusal: (address: string | undefined) => HoldfastError | undefined;
  /** Why every request is refused now; undefined while they are taken. */
  readonly blocked: () => string | undefined;
  readonly onTaken: (signal: Signal, rows: number, refused: number) => void;
  readonly onRefused: (refusal: Refusal) => void;
}

/** What both protocols share: who may send, how much at once, and what the answers say. */
export class Receiver {
  readonly #dependencies: ReceiverDependencies;

  constructor(dependencies: ReceiverDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Decides by its header alone whether a request is refused.
   *
   * @param authorization the whole value of the header
   * @param producer the address it comes from
   */
  refusalOf(authorization: string | undefined, producer: string): Refusal | undefined {
    const isMissing = authorization === undefined || authorization.trim() === '';
    const kind = isMissing ? 'missing' : this.#dependencies.keys()?.judge(authorization, producer).kind;
    const flood = kind === 'accepted' ? undefined : this.#dependencies.strangerRefusal(producer);
    if (flood) return this.refuse(flood);
    switch (kind) {
      case 'missing': {
        const refusal = {
          reason: 'key_missing',
          status: 401,
          grpc: GRPC.unauthenticated,
          message: KEY_MISSING,
        };
        this.#dependencies.onRefused(refusal);
        return refusal;
      }
      case undefined:
        return this.refuse(new OtlpError('HF_OTLP_NO_KEYS'));
      case 'prefixed':
        return this.refuse(new OtlpError('HF_OTLP_KEY_PREFIXED'));
      case 'legacyToken':
        return this.refuse(new OtlpError('HF_OTLP_KEY_LEGACY'));
      case 'unknown':
        return this.refuse(new OtlpError('HF_OTLP_KEY_UNKNOWN'));
      case 'accepted': {
        const reason = this.#dependencies.blocked();
        return reason === undefined
          ? undefined
          : this.refuse(new OtlpError('HF_OTLP_UNAVAILABLE', { reason }));
      }
    }
  }

  /** Reserves memory for a body. @param bytes as far as announced */
  share(bytes: number): BudgetShare | Refusal {
    return this.#dependencies.budget.share(bytes) ?? this.refuse(new OtlpError('HF_OTLP_OVERLOADED'));
  }

  /** Makes a refusal of an error, and counts it. */
  refuse({ code, status, what, remedy, details }: HoldfastError): Refusal {
    const refusal = {
      reason: code.replace(/^HF_(?:OTLP|HTTP)_/, '').toLowerCase(),
      status,
      grpc: grpcCode(status),
      message: `${what} ${remedy}`,
      ...(status === 429 && { retrySeconds: code === FLOOD ? Number(details.seconds) : SOON_SECONDS }),
      ...(code === FLOOD && { isFlood: true }),
      ...(status === 503 && {
        retrySeconds: code === 'HF_OTLP_INTERRUPTED' ? SOON_SECONDS : LATER_SECONDS,
      }),
    };
    this.#dependencies.onRefused(refusal);
    return refusal;
  }

  /**
   * Takes a body; resolves when its rows are kept.
   *
   * @param authorization its key, with which its services are then seen
   */
  async take(body: Body, authorization: string): Promise<Accepted | Refusal> {
    const { intake, keys, onTaken } = this.#dependencies;
    const outcome = await intake.take(body);
    if (outcome.kind !== 'taken') return this.#failed(outcome);
    const { rows, refused, reasons, services } = outcome;
    onTaken(body.signal, rows, refused);
    for (const service of services) keys()?.judge(authorization, service);
    const each = Object.entries(reasons).map(([reason, count]) => `${count}: ${reason}`);
    return { refused, message: refused === 0 ? '' : `${refused} refused. ${each.join('; ')}.` };
  }

  #failed(failure: Failure): Refusal {
    switch (failure.kind) {
      case 'invalid':
        return this.refuse(new OtlpError('HF_OTLP_BODY_INVALID', { reason: failure.reason }));
      case 'too-large':
        return this.refuse(new OtlpError('HF_OTLP_BODY_TOO_LARGE'));
      case 'full':
        return this.refuse(new OtlpError('HF_OTLP_UNAVAILABLE', { reason: 'the spool is full' }));
      case 'disk':
        return this.refuse(
          new OtlpError('HF_OTLP_UNAVAILABLE', { reason: `the disk refuses: ${failure.reason}` }),
        );
      case 'interrupted':
        return this.refuse(new OtlpError('HF_OTLP_INTERRUPTED', { reason: failure.reason }));
    }
  }
}

function grpcCode(status: number): number {
  if (status === 401) return GRPC.unauthenticated;
  if (status === 408) return GRPC.late;
  if (status === 413) return GRPC.exhausted;
  if (status === 429 || status === 503) return GRPC.unavailable;
  return status < 500 ? GRPC.invalid : GRPC.internal;
}

/** The least that a request counts for, bytes: one that waits for its answer costs more than its body. */
const LEAST_BYTES = 64 * 1024;

/** A request's share of the memory for bodies. */
export interface BudgetShare {
  /** @param bytes that it needs in all @returns whether it can have them */
  grow(bytes: number): boolean;
  /** May be called more than once. */
  release(): void;
}

/** Bounds the bytes of all bodies that are being received or wait for their answer. */
export class BodyBudget {
  readonly #limit: number;
  #used = 0;

  /** @param limit bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** @returns undefined when the bytes would exceed the limit */
  share(bytes: number): BudgetShare | undefined {
    let own = 0;
    const grow = (total: number): boolean => {
      const more = Math.max(total, LEAST_BYTES) - own;
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

// Answers in protobuf are two messages of two fields. They are written here, because every command would load the library.

/** `ExportPartialSuccess` within the response of any signal; both fields have the same numbers in all three. */
export function exportResponse({ refused, message }: Accepted): Buffer {
  const partial = Buffer.concat([numberField(1, refused), textField(2, message)]);
  return partial.length === 0 ? partial : bytesField(1, partial);
}

/** `google.rpc.Status`, with a `RetryInfo` when it is worth trying again. */
export function rpcStatus({ grpc, message, retrySeconds }: Refusal): Buffer {
  const fields = [numberField(1, grpc), textField(2, message)];
  if (retrySeconds !== undefined) {
    const retryInfo = bytesField(1, numberField(1, retrySeconds));
    const any = [textField(1, 'type.googleapis.com/google.rpc.RetryInfo'), bytesField(2, retryInfo)];
    fields.push(bytesField(3, Buffer.concat(any)));
  }
  return Buffer.concat(fields);
}

function numberField(number: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.concat([varint(number * 8), varint(value)]);
}

function textField(number: number, text: string): Buffer {
  return text === '' ? Buffer.alloc(0) : bytesField(number, Buffer.from(text));
}

function bytesField(number: number, content: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}
