/** What an exporter of the SDK answers: 0 is success, 1 failure. */
interface Result {
  code: number;
  error?: Error;
}

interface Exporter<T> {
  export(items: T, done: (result: Result) => void): void;
  forceFlush?(): Promise<void>;
  shutdown(): Promise<void>;
}

const FAILED = 1;

/** An exporter whose receiver is known only when it listens, and may be another one after a restart of it. */
export class LateExporter<T> {
  readonly #endpoint: () => string | undefined;
  readonly #make: (base: string) => Exporter<T>;
  #made: { readonly base: string; readonly exporter: Exporter<T> } | undefined;

  constructor(endpoint: () => string | undefined, make: (base: string) => Exporter<T>) {
    this.#endpoint = endpoint;
    this.#make = make;
  }

  export(items: T, done: (result: Result) => void): void {
    const base = this.#endpoint() ?? this.#made?.base;
    if (base === undefined) {
      done({ code: FAILED, error: new Error('the receiver does not listen yet') });
      return;
    }
    if (this.#made?.base !== base) this.#made = { base, exporter: this.#make(base) };
    this.#made.exporter.export(items, done);
  }

  async forceFlush(): Promise<void> {
    await this.#made?.exporter.forceFlush?.();
  }

  async shutdown(): Promise<void> {
    await this.#made?.exporter.shutdown();
  }
}
