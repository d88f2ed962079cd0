import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type { Msg, MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { ClusterError } from '../errors.ts';
import type { ClusterKey } from '../keys.ts';
import { askedAgain } from './asked-again.ts';
import { KeptConnection, SparseLines } from './connection.ts';
import { Dialler, type DialOptions } from './dial.ts';
import { checkClient, headerBytes } from './header-bytes.ts';
import { type Headers, MOST_HEADER_BYTES, plainHeaders, REPLY_TO, Seal } from './seal.ts';

export interface LinkDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly key: ClusterKey;
}

/** A message that somebody with the key of the cluster sent. */
export interface LinkMessage {
  readonly subject: string;
  readonly body: Buffer;
  readonly headers: Headers;
  /** Answers a question, at the place that its sender named; nothing happens when the message is none, or the connection is lost. */
  respond(body: Uint8Array | string): void;
}

export type LinkHandler = (message: LinkMessage) => void | Promise<void>;

interface Modules {
  readonly transport: typeof import('@nats-io/transport-node');
  readonly jetstream: typeof import('@nats-io/jetstream');
}

/** Of a request to JetStream itself. Milliseconds. */
const API_TIMEOUT_MS = 5_000;
/** Messages without a valid code are logged this often, with how many there were. */
const FORGED_LINE_MS = 60_000;
/** Of streams, that are known to have been counted. */
const MOST_FORGED_PLACES = 10_000;

/**
 * What a host sends and hears over NATS (docs/cluster.md, "Beats"). The connection comes and goes: subscriptions survive that,
 * requests under way fail, and nothing is sent while there is none. No throw of a handler gets out of here.
 */
export class NatsLink {
  readonly key: ClusterKey;
  readonly #modules: Modules;
  readonly #dialler: Dialler;
  readonly #connection: KeptConnection;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #seal: Seal;
  /** Answers of other hosts come below this subject, which each of them may publish to: no user needs more rights for an answer. */
  readonly #answers: string;
  readonly #forgedLines: SparseLines;
  #jetstream: JetStreamClient | undefined;
  #manager: JetStreamManager | undefined;
  #forged = 0;
  /** Those of streams that were counted last, oldest first. */
  readonly #forgedPlaces = new Set<string>();

  private constructor(
    modules: Modules,
    dialler: Dialler,
    cluster: string,
    { clock, logger, key }: LinkDependencies,
  ) {
    this.#modules = modules;
    this.#dialler = dialler;
    this.#clock = clock;
    this.#logger = logger;
    this.#connection = new KeptConnection(dialler, clock, logger);
    this.#connection.onChange(() => {
      this.#jetstream = undefined;
      this.#manager = undefined;
    });
    this.#forgedLines = new SparseLines(clock, FORGED_LINE_MS);
    this.key = key;
    this.#seal = new Seal(key);
    this.#answers = `hf.${cluster}.answer`;
  }

  /**
   * Loads the client of NATS, begins to connect, and does not wait for it.
   *
   * @throws HF_CONFIG_SECRET_MISSING and its like: the file of the credentials, or of the certificate's key, cannot be used
   * @throws HF_CLUSTER_CLIENT the client is not the one that Holdfast was made for
   */
  static async open(options: DialOptions, dependencies: LinkDependencies): Promise<NatsLink> {
    const [transport, jetstream] = await Promise.all([
      import('@nats-io/transport-node'),
      import('@nats-io/jetstream'),
    ]);
    checkClient(transport);
    const dialler = new Dialler(transport, options);
    dialler.check();
    const link = new NatsLink({ transport, jetstream }, dialler, options.name, dependencies);
    link.#connection.start();
    return link;
  }

  /** Whether the servers answer, as far as this host knows: a loss without a word is noticed within two seconds. */
  get isUp(): boolean {
    return this.#connection.current !== undefined;
  }

  /** Why there is no connection, without secrets; undefined while there is one. */
  get problem(): string | undefined {
    return this.isUp ? undefined : this.#connection.problem;
  }

  /** The servers, without secrets. */
  get shown(): string {
    return this.#dialler.shown;
  }

  /** Version of the server, while connected. */
  get serverVersion(): string | undefined {
    return this.#connection.current?.info?.version;
  }

  /** Whether the server that this host is connected to is one of several. @throws HF_CLUSTER_UNREACHABLE */
  get isClustered(): boolean {
    return this.connected().info?.cluster !== undefined;
  }

  /** Messages that nobody with the key of the cluster can have sent, or not to that place, heard or on a stream. They are dropped. */
  get forged(): number {
    return this.#forged;
  }

  /**
   * Counts a message that is dropped because nobody with the key of the cluster can have sent it there; a line in the log says so, once a minute.
   *
   * @param place on a stream: whoever reads that place again does not count it again
   */
  countForged(subject: string, place?: string): void {
    if (place !== undefined) {
      if (this.#forgedPlaces.has(place)) return;
      const [oldest] = this.#forgedPlaces;
      if (oldest !== undefined && this.#forgedPlaces.size >= MOST_FORGED_PLACES)
        this.#forgedPlaces.delete(oldest);
      this.#forgedPlaces.add(place);
    }
    this.#forged += 1;
    if (this.#forgedLines.isDue()) this.#logger.warn({ subject, count: this.#forged }, 'cluster.nats.forged');
  }

  /** Calls back with each change of `isUp`, and when it is closed. @returns ends that */
  onChange(listener: (isUp: boolean) => void): () => void {
    return this.#connection.onChange(listener);
  }

  /** @returns whether there is a connection, after waiting for one at most this long, milliseconds */
  ready(timeoutMs: number): Promise<boolean> {
    return this.#connection.ready(timeoutMs);
  }

  /**
   * Sends a message to whoever listens now. Whoever hears it may send it again: what must not happen twice carries a number.
   *
   * @throws HF_CLUSTER_UNREACHABLE there is no connection; nothing was sent
   * @throws HF_CLUSTER_SIZE it is larger than the servers take
   */
  publish(subject: string, body: Uint8Array | string, headers: Headers = {}): void {
    const content = bytes(body);
    this.connected().publish(subject, content, { headers: this.#sealed(subject, content, headers) });
  }

  /**
   * Hears messages from now on, also after a new connection; what is sent meanwhile is lost. What has no code of the key is dropped.
   *
   * @param handler a throw is logged
   * @param seal of the stream whose messages these are; they are for no stream unless set
   * @returns ends it
   */
  subscribe(subject: string, handler: LinkHandler, seal = this.#seal): () => void {
    return this.listen(subject, (message) => {
      const opened = this.#opened(message, seal);
      return opened && handler(opened);
    });
  }

  /**
   * Hears messages as they stand, sealed or not.
   *
   * @returns ends it
   */
  listen(subject: string, deliver: (message: Msg) => void | Promise<void>): () => void {
    return this.#connection.listen(subject, deliver);
  }

  /**
   * Asks whoever listens; the first answer counts. That nobody listens is what the server says, or somebody in its place: an answer that comes
   * within half a second counts all the same.
   *
   * @throws HF_CLUSTER_UNREACHABLE there is no connection, or nobody listens
   * @throws HF_CLUSTER_TIMEOUT nobody answered in time, or the connection was lost meanwhile
   */
  async request(subject: string, body: Uint8Array | string, timeoutMs: number): Promise<LinkMessage> {
    const content = bytes(body);
    const { answers, isUnheard } = await this.#gather(subject, content, {
      timeoutMs,
      unheardMs: UNHEARD_MS,
      isLast: () => true,
    });
    const [first] = answers;
    if (first) return first;
    if (isUnheard)
      throw new ClusterError('HF_CLUSTER_UNREACHABLE', { reason: `nobody listens to ${subject}` });
    throw new ClusterError('HF_CLUSTER_TIMEOUT', { what: subject, ms: timeoutMs });
  }

  /**
   * Asks all who listen.
   *
   * @param isLast is told each answer as it comes, and says whether no further one is waited for
   * @returns what came in time, or until the connection was lost
   * @throws HF_CLUSTER_UNREACHABLE there is no connection
   */
  async requestAll(
    subject: string,
    body: Uint8Array | string,
    timeoutMs: number,
    isLast: (answer: LinkMessage) => boolean = () => false,
  ): Promise<readonly LinkMessage[]> {
    const limits = { timeoutMs, unheardMs: timeoutMs, isLast };
    const { answers } = await this.#gather(subject, bytes(body), limits);
    return answers;
  }

  /** The present connection. @throws HF_CLUSTER_UNREACHABLE */
  connected(): NatsConnection {
    const { current, problem } = this.#connection;
    if (!current) throw new ClusterError('HF_CLUSTER_UNREACHABLE', { reason: problem });
    return current;
  }

  /** @throws HF_CLUSTER_UNREACHABLE */
  jetstream(): JetStreamClient {
    this.#jetstream ??= this.#modules.jetstream.jetstream(this.connected(), { timeout: API_TIMEOUT_MS });
    return this.#jetstream;
  }

  /** @throws HF_CLUSTER_UNREACHABLE */
  async manager(): Promise<JetStreamManager> {
    if (this.#manager) return this.#manager;
    const connection = this.connected();
    const options = { checkAPI: false, timeout: API_TIMEOUT_MS };
    const manager = await this.#modules.jetstream.jetstreamManager(connection, options);
    if (this.#connection.current === connection) this.#manager = manager;
    return manager;
  }

  /**
   * Asks JetStream something that changes nothing, again each second until it answers or 5 s are over.
   *
   * @throws HF_CLUSTER_UNREACHABLE, and what the client of NATS throws
   */
  asked<T>(question: (manager: JetStreamManager) => Promise<T>): Promise<T> {
    const isBehind = () => this.#connection.isBehind;
    return askedAgain(async () => question(await this.manager()), this.#clock, isBehind);
  }

  /** @returns headers as the client of NATS takes them */
  headers(plain: Headers): MsgHdrs {
    const headers = this.#modules.transport.headers();
    for (const [name, value] of Object.entries(plain)) headers.set(name, value);
    return headers;
  }

  /** @throws HF_CLUSTER_SIZE the servers take no body of so many bytes @throws HF_CLUSTER_UNREACHABLE */
  fits(length: number): void {
    const most = (this.connected().info?.max_payload ?? Number.POSITIVE_INFINITY) - MOST_HEADER_BYTES;
    if (length > most) throw new ClusterError('HF_CLUSTER_SIZE', { bytes: length, most });
  }

  /** Ends the connection. Nothing is sent or heard any more. */
  close(): Promise<void> {
    return this.#connection.close();
  }

  async #gather(
    subject: string,
    body: Uint8Array,
    { timeoutMs, unheardMs, isLast }: AnswerLimits,
  ): Promise<{ readonly answers: readonly LinkMessage[]; readonly isUnheard: boolean }> {
    const connection = this.connected();
    const reply = this.#modules.transport.createInbox(this.#answers);
    const headers = this.#sealed(subject, body, { [REPLY_TO]: reply });
    const answers: LinkMessage[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    let isUnheard = false;
    const ends = [
      this.listen(reply, (message) => {
        if (message.data.length === 0 && isUnheardAnswer(message)) {
          if (!isUnheard) ends.push(this.#clock.after(unheardMs, resolve));
          isUnheard = true;
          return;
        }
        const opened = this.#opened(message, this.#seal);
        if (!opened) return;
        answers.push(opened);
        if (isLast(opened)) resolve();
      }),
      this.#clock.after(timeoutMs, resolve),
      this.onChange(() => resolve()),
    ];
    try {
      connection.publish(subject, body, { headers, reply });
      await promise;
      return { answers, isUnheard };
    } finally {
      for (const end of ends) end();
    }
  }

  #sealed(subject: string, body: Uint8Array, headers: Headers): MsgHdrs {
    this.fits(body.length);
    return this.headers(this.#seal.add({ subject, body, headers }));
  }

  #opened(message: Msg, seal: Seal): LinkMessage | undefined {
    const { subject, data, reply } = message;
    const headers = plainHeaders(() => message.headers, headerBytes(message));
    const replyTo = headers?.[REPLY_TO];
    // Whoever repeats a question chooses where its answer goes, and the answer has our code.
    const isElsewhere = replyTo !== undefined && replyTo !== reply;
    if (!headers || isElsewhere || !seal.isGenuine({ subject, headers, body: data })) {
      this.countForged(subject);
      return undefined;
    }
    const respond = (answer: Uint8Array | string) => {
      if (replyTo !== undefined && this.isUp) this.publish(replyTo, answer);
    };
    return { subject, body: Buffer.from(data.buffer, data.byteOffset, data.length), headers, respond };
  }
}

/** Status of an answer by the server itself: nobody listens to the subject. */
const NOBODY = 503;
/** Anybody in the account can send it: how long an answer is waited for all the same. */
const UNHEARD_MS = 500;

function isUnheardAnswer(message: Msg): boolean {
  try {
    return headerBytes(message) <= MOST_HEADER_BYTES && message.headers?.code === NOBODY;
  } catch {
    return false; // malformed headers of anybody in the account
  }
}

interface AnswerLimits {
  /** The longest wait, milliseconds. */
  readonly timeoutMs: number;
  /** Once it was said that nobody listens, milliseconds. */
  readonly unheardMs: number;
  /** Whether no answer after this one is waited for. */
  readonly isLast: (answer: LinkMessage) => boolean;
}

function bytes(body: Uint8Array | string): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}
