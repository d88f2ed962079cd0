import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { Headers } from '../nats/seal.ts';
import type { LinearStream } from '../nats/stream.ts';
import { confirm } from './confirm.ts';
import type { LogStreamNames } from './incarnations.ts';
import { type Fence, fenceHeaders, headersOf, type MirrorMessage } from './message.ts';
import type { StreamPlace } from './standing.ts';
import { Window } from './window.ts';

/** A host's stream that is open, and where it ends. */
export interface OpenStream {
  readonly stream: LinearStream;
  readonly names: LogStreamNames;
  readonly incarnation: number;
  /** Its last message. */
  readonly last: number;
}

export interface WriterOptions {
  /** Name of this host. */
  readonly host: string;
  readonly clock: Clock;
  /** Called when a message and all before it stand on the stream; with the place when a record can be found by it. */
  readonly onStands: (place: StreamPlace | undefined) => void;
  /** Called when states stand there. */
  readonly onStates: (place: StreamPlace) => void;
  /** Called when something changed: there is room, or a message failed. */
  readonly onChange: () => void;
}

interface Appended {
  readonly subject: string;
  readonly id: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly stands: (streamSeq: number) => void;
}

/** What a message takes on the disk of a server beside its body: about. */
const MESSAGE_BYTES = 700;

/** Appends to the open stream, one message behind the other, and reads each back before it counts. */
export class Writer {
  readonly stream: LinearStream;
  readonly names: LogStreamNames;
  readonly incarnation: number;
  readonly #options: WriterOptions;
  readonly #window: Window;
  #last: number;
  #bytes = 0;

  constructor({ stream, names, incarnation, last }: OpenStream, options: WriterOptions) {
    this.stream = stream;
    this.names = names;
    this.incarnation = incarnation;
    this.#last = last;
    this.#options = options;
    this.#window = new Window(options.onChange, options.clock);
  }

  /** The last message that was sent: the next one expects it. */
  get last(): number {
    return this.#last;
  }

  /** What was sent takes so many bytes of the stream, about. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether another message may be sent now. */
  get hasRoom(): boolean {
    return this.#window.hasRoom;
  }

  /** Whether everything that was sent stands on the stream, or failed. */
  get isSettled(): boolean {
    return this.#window.isEmpty;
  }

  /** @throws why the first message failed that did */
  check(): void {
    this.#window.check();
  }

  /** Resolves when nothing is under way any more. */
  settled(): Promise<void> {
    return this.#window.settled();
  }

  /** Resolves when everything that was sent stands on the stream. @throws why the first message failed that did */
  async stands(): Promise<void> {
    await this.#window.settled();
    this.#window.check();
  }

  append(message: MirrorMessage): void {
    const { kind, part, to, hash, body } = message;
    const { onStands, onStates } = this.#options;
    const isLast = part === undefined || part.number === part.of;
    const isStates = kind === 'states';
    this.#append({
      subject: isStates && isLast ? this.names.states : this.names.records,
      id: `${kind}.${to}.${hash.slice(0, 16)}.${part?.number ?? 1}`,
      ...{ headers: headersOf(message), body },
      stands: (streamSeq) => {
        const place = isLast ? { streamSeq, seq: to, hash } : undefined;
        if (isStates && place) onStates(place);
        onStands(isStates ? undefined : place);
      },
    });
  }

  /** @returns the message that it will be */
  fence(fence: Fence): number {
    this.#append({
      subject: this.names.records,
      id: `fence.${fence.singleton}.${fence.token}`,
      ...{ headers: fenceHeaders(fence), body: new Uint8Array() },
      stands: () => this.#options.onStands(undefined),
    });
    return this.#last;
  }

  #append({ subject, id: what, headers, body, stands }: Appended): void {
    const expectedLast = this.#last;
    const seq = expectedLast + 1;
    this.#last = seq;
    const bytes = body.length + MESSAGE_BYTES;
    this.#bytes += bytes;
    // The server takes no second message of an id for a while, so nobody may know the next one before it is sent.
    const id = `${this.#options.host}.${this.incarnation}.${what}.${expectedLast}.${randomUUID()}`;
    const appended = this.stream.append(body, { subject, id, expectedLast, headers });
    const confirmed = appended.then(() => confirm(this.stream, { seq, id }, this.#options.clock));
    this.#window.add(confirmed, bytes, () => stands(seq));
  }
}
