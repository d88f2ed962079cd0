import { AsyncLocalStorage } from 'node:async_hooks';
import { config, type Observable, Subject, takeUntil } from 'rxjs';
import { z } from 'zod';
import { defineTopic, type Topic } from './topic.ts';

/** What a subscriber receives: the payload with its correlation and cause. @public */
export interface Envelope<T = unknown> {
  readonly topic: string;
  readonly payload: T;
  /** Shared by all messages and records that follow from one first message. */
  readonly correlation: string;
  /** The seq of the record that led to this message, when one did. */
  readonly cause?: number;
  /**
   * Secret-bearing bodies, already sealed, that must be stored in the same transaction as the record this
   * message becomes. Never serialised with the payload.
   */
  readonly blobs?: ReadonlyMap<string, Uint8Array>;
  /** Its place among all messages that go to every host of a cluster, the same on each of them; absent of other messages. */
  readonly order?: number;
  /** When it was sent, by the clock of the server that orders them, epoch milliseconds: the same for every host. */
  readonly sentAt?: number;
}

/** What a publisher may say beside the payload. */
export interface PublishMeta {
  readonly correlation?: string;
  readonly cause?: number;
  readonly blobs?: ReadonlyMap<string, Uint8Array>;
}

export interface SubscriberFailure {
  /** Whose subscription or message it was. */
  owner: string;
  topic: string;
  /** `subscriber` when a listener threw, `payload` when the message failed its topic's schema. */
  fault: 'subscriber' | 'payload';
  message: string;
}

/** Reports a subscriber that threw, or a message that was refused. The bus itself goes on. */
export const subscriberFailed: Topic<SubscriberFailure> = defineTopic(
  'bus.subscriber_failed',
  z.object({
    owner: z.string(),
    topic: z.string(),
    fault: z.enum(['subscriber', 'payload']),
    message: z.string(),
  }),
  'A subscriber threw, or a published payload did not fit its topic.',
);

/** A stack of nested publishes deeper than this is a loop of subscribers that answer each other. */
const MAX_DEPTH = 64;

/**
 * RxJS throws what an observer threw on a later turn, which would end the process. Its hook for that is one for the
 * whole process; the delivery that the throw belongs to is known by its asynchronous context.
 */
const delivering = new AsyncLocalStorage<(error: unknown) => void>();
config.onUnhandledError = (error) => {
  const failed = delivering.getStore();
  if (!failed) throw error;
  failed(error);
};

/**
 * The process's one message bus (C1). Delivery is synchronous and in order; a throw of one subscriber reaches
 * neither the publisher nor the other subscribers, but the topic `bus.subscriber_failed`.
 *
 * @public
 */
export class Bus {
  readonly #newCorrelation: () => string;
  readonly #subjects = new Map<string, Subject<Envelope>>();
  readonly #owners = new Map<string, Subject<void>>();
  /** Topics that somebody reads as a stream: errors of its observers are found by the asynchronous context only. */
  readonly #streamed = new Set<string>();
  #depth = 0;

  /** @param newCorrelation makes the id for a message that follows from no other; ids must be time-ordered */
  constructor(newCorrelation: () => string) {
    this.#newCorrelation = newCorrelation;
  }

  /**
   * Validates and delivers. Never throws: a payload that fails its schema is reported on
   * `bus.subscriber_failed` and dropped.
   *
   * @returns the correlation id under which the message went out
   */
  publish<T>(topic: Topic<T>, payload: T, meta: PublishMeta = {}): string {
    const correlation = meta.correlation ?? this.#newCorrelation();
    const parsed = topic.schema.safeParse(payload);
    if (!parsed.success) {
      this.#report({
        owner: 'publisher',
        topic: topic.name,
        fault: 'payload',
        message: issues(parsed.error),
      });
      return correlation;
    }
    if (this.#depth >= MAX_DEPTH && topic.name !== subscriberFailed.name) {
      const message = `nested deeper than ${MAX_DEPTH} publishes: subscribers answer each other in a loop`;
      this.#report({ owner: 'publisher', topic: topic.name, fault: 'payload', message });
      return correlation;
    }
    const subject = this.#subjects.get(topic.name);
    if (!subject) return correlation;
    const envelope: Envelope = { ...meta, topic: topic.name, payload: parsed.data, correlation };
    this.#depth += 1;
    try {
      if (this.#streamed.has(topic.name)) this.#deliver(subject, envelope);
      else subject.next(envelope);
    } finally {
      this.#depth -= 1;
    }
    return correlation;
  }

  /**
   * A topic as an RxJS stream, for composition; it completes when its owner is released. An observer that
   * throws is isolated and reported as owner `stream`: give `subscribe` a listener to see a name there.
   *
   * @param owner whose subscription this is, for `release`
   */
  stream<T>(topic: Topic<T>, owner: string): Observable<Envelope<T>> {
    this.#streamed.add(topic.name);
    return this.#until(topic, owner);
  }

  /**
   * Calls `listener` for each message until `release(owner)` or the returned function is called. A throw, or a
   * rejection of the promise it returns, is isolated and reported under the owner's name.
   */
  subscribe<T>(topic: Topic<T>, owner: string, listener: (envelope: Envelope<T>) => unknown): () => void {
    // The listener has its own guard: RxJS would report its throw on a later turn, without a name.
    const subscription = this.#until(topic, owner).subscribe((envelope) => {
      try {
        const result = listener(envelope);
        if (result instanceof Promise) result.catch((error) => this.#failed(owner, topic.name, error));
      } catch (error) {
        this.#failed(owner, topic.name, error);
      }
    });
    return () => subscription.unsubscribe();
  }

  /** Ends every subscription of an owner; a plugin that stops leaves no listener behind. */
  release(owner: string): void {
    this.#owners.get(owner)?.next();
    this.#owners.delete(owner);
  }

  #deliver(subject: Subject<Envelope>, envelope: Envelope): void {
    const failed = (error: unknown) => this.#failed('stream', envelope.topic, error);
    delivering.run(failed, () => subject.next(envelope));
  }

  #until<T>(topic: Topic<T>, owner: string): Observable<Envelope<T>> {
    const messages: Observable<Envelope> = this.#subject(topic.name).pipe(takeUntil(this.#released(owner)));
    // `publish` has parsed each by the topic's schema.
    return messages as Observable<Envelope<T>>;
  }

  #subject(topic: string): Subject<Envelope> {
    const subject = this.#subjects.get(topic) ?? new Subject<Envelope>();
    this.#subjects.set(topic, subject);
    return subject;
  }

  #released(owner: string): Subject<void> {
    const released = this.#owners.get(owner) ?? new Subject<void>();
    this.#owners.set(owner, released);
    return released;
  }

  #failed(owner: string, topic: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#report({ owner, topic, fault: 'subscriber', message });
  }

  /** A listener of the failure topic that fails itself is not reported again: that would never end. */
  #report(failure: SubscriberFailure): void {
    if (failure.topic !== subscriberFailed.name) this.publish(subscriberFailed, failure);
  }
}

function issues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'payload'}: ${issue.message}`).join('; ');
}
