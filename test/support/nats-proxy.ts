import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** What a link does with what is sent over it. */
export interface LinkConditions {
  /** Nothing from the client reaches the server; both ends stay connected, as with a cable pulled out on the way. */
  readonly dropsUp?: boolean;
  /** Nothing from the server reaches the client. */
  readonly dropsDown?: boolean;
  /** How long each chunk takes, milliseconds, in each direction. */
  readonly delayMs?: number;
  /** What passes in each direction; as much as comes unless set. */
  readonly bytesPerSecond?: number;
  /** The part of chunks that are lost once and sent again after `resendMs`, as TCP does it: 0 to 1. */
  readonly loss?: number;
  /** Until a lost chunk is sent again; 200 unless set. */
  readonly resendMs?: number;
  /** Decides which chunks are lost; a fixed sequence unless set. */
  readonly random?: () => number;
}

/**
 * A connection between a client and a server that a test cuts, in one direction or both, slows and heals. TCP stays intact:
 * what a cut holds back arrives when it is healed, unless the connection was closed meanwhile.
 */
export class NatsProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #scheme: string;
  readonly #pairs = new Set<Pair>();
  #conditions: LinkConditions = {};
  #refuses = false;
  #refused = 0;

  private constructor(server: Server, target: number, scheme: string) {
    this.#server = server;
    this.#target = target;
    this.#scheme = scheme;
    server.on('connection', (client) => this.#accept(client));
  }

  static async open(target: number, scheme = 'nats'): Promise<NatsProxy> {
    const server = createServer({ allowHalfOpen: true });
    const proxy = new NatsProxy(server, target, scheme);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get url(): string {
    const { port } = this.#server.address() as { port: number };
    return `${this.#scheme}://${this.#scheme === 'tls' ? 'localhost' : '127.0.0.1'}:${port}`;
  }

  /** Connections that were refused since it was opened. */
  get refused(): number {
    return this.#refused;
  }

  /** Nothing passes any more and nobody is told; `up` or `down` cuts one direction only. */
  cut(direction: 'both' | 'up' | 'down' = 'both'): void {
    this.set({ ...this.#conditions, dropsUp: direction !== 'down', dropsDown: direction !== 'up' });
  }

  /** Everything passes again at once. */
  heal(): void {
    this.#refuses = false;
    this.set({});
  }

  set(conditions: LinkConditions): void {
    this.#conditions = conditions;
    for (const pair of this.#pairs) pair.wake();
  }

  /** Resets all connections; new ones are refused until `heal`. */
  refuse(): void {
    this.#refuses = true;
    this.drop();
  }

  /** Resets all connections; new ones are taken. */
  drop(): void {
    for (const pair of this.#pairs) pair.end();
  }

  async close(): Promise<void> {
    this.drop();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(client: Socket): void {
    if (this.#refuses) {
      this.#refused += 1;
      client.on('error', () => {});
      client.destroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    const pair = new Pair(client, server, () => this.#conditions);
    this.#pairs.add(pair);
    pair.onEnd = () => this.#pairs.delete(pair);
  }
}

/** The two sockets of one connection. */
class Pair {
  onEnd: () => void = () => {};
  readonly #directions: readonly Direction[];
  readonly #sockets: readonly Socket[];
  readonly #conditions: () => LinkConditions;
  #endedBy: 'dropsUp' | 'dropsDown' | undefined;

  constructor(client: Socket, server: Socket, conditions: () => LinkConditions) {
    this.#sockets = [client, server];
    this.#directions = [
      new Direction(client, server, conditions, 'dropsUp'),
      new Direction(server, client, conditions, 'dropsDown'),
    ];
    for (const socket of this.#sockets) {
      socket.setNoDelay(true);
      socket.on('error', () => {});
    }
    client.on('close', () => this.#ended('dropsUp')).on('end', () => this.#ended('dropsUp'));
    server.on('close', () => this.#ended('dropsDown')).on('end', () => this.#ended('dropsDown'));
    this.#conditions = conditions;
  }

  wake(): void {
    if (this.#endedBy !== undefined) this.#ended(this.#endedBy);
    for (const direction of this.#directions) direction.pump();
  }

  /** The end of a connection passes a cut as little as its data does. */
  #ended(direction: 'dropsUp' | 'dropsDown'): void {
    this.#endedBy ??= direction;
    if (!this.#conditions()[this.#endedBy]) this.end();
  }

  end(): void {
    for (const socket of this.#sockets) socket.destroy();
    for (const direction of this.#directions) direction.end();
    this.onEnd();
  }
}

/** More than this waits in the sender's socket instead. */
const HELD_BYTES = 1024 * 1024;
/** Of a link with a rate: what is large comes bit by bit. */
const PIECE_BYTES = 4 * 1024;

class Direction {
  readonly #to: Socket;
  readonly #from: Socket;
  readonly #conditions: () => LinkConditions;
  readonly #drops: 'dropsUp' | 'dropsDown';
  #held: { chunk: Buffer; at: number }[] = [];
  #heldBytes = 0;
  #newest = 0;
  #timer: NodeJS.Timeout | undefined;
  #draw = 1;

  constructor(from: Socket, to: Socket, conditions: () => LinkConditions, drops: 'dropsUp' | 'dropsDown') {
    this.#from = from;
    this.#to = to;
    this.#conditions = conditions;
    this.#drops = drops;
    from.on('data', (data: Buffer) => {
      const size = this.#conditions().bytesPerSecond === undefined ? data.length : PIECE_BYTES;
      for (let begin = 0; begin < data.length; begin += size)
        this.#take(Buffer.from(data.subarray(begin, begin + size)));
    });
  }

  pump(): void {
    clearTimeout(this.#timer);
    if (this.#conditions()[this.#drops]) return;
    const now = performance.now();
    for (let next = this.#held[0]; next !== undefined && next.at <= now; next = this.#held[0]) {
      this.#held.shift();
      this.#heldBytes -= next.chunk.length;
      this.#to.write(next.chunk);
    }
    if (this.#heldBytes < HELD_BYTES) this.#from.resume();
    const [first] = this.#held;
    if (first) this.#timer = setTimeout(() => this.pump(), Math.max(1, first.at - now));
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#held = [];
  }

  #take(chunk: Buffer): void {
    const { delayMs = 0, bytesPerSecond, loss = 0, resendMs = 200 } = this.#conditions();
    const { random = () => this.#next() } = this.#conditions();
    const passingMs = bytesPerSecond === undefined ? 0 : (chunk.length / bytesPerSecond) * 1_000;
    const lateMs = delayMs + (loss > 0 && random() < loss ? resendMs : 0);
    // TCP keeps the order: what follows a lost chunk waits for it.
    this.#newest = Math.max(this.#newest, performance.now() + lateMs) + passingMs;
    this.#held.push({ chunk, at: lateMs + passingMs === 0 ? 0 : this.#newest });
    this.#heldBytes += chunk.length;
    if (this.#heldBytes >= HELD_BYTES) this.#from.pause();
    this.pump();
  }

  /** A linear congruential generator, so that a failure happens again. */
  #next(): number {
    this.#draw = (this.#draw * 48_271) % 2_147_483_647;
    return this.#draw / 2_147_483_647;
  }
}
