/** Result of an export, as the SDK's exporters report it. */
interface ExportResult {
  readonly code: number;
  readonly error?: Error;
}

/** Code of the SDK for an export that failed. */
const FAILED = 1;

interface Exporter<T> {
  export(items: T, done: (result: ExportResult) => void): void;
  forceFlush?(): Promise<void>;
  shutdown(): Promise<void>;
}

/**
 * An exporter for a receiver whose URL may change. The receiver of this process listens after all plugins have started,
 * perhaps on another port at each start, while the SDK's exporters take their URL once.
 */
export class ReconnectingExporter<T> {
  readonly #endpoint: () => string | undefined;
  readonly #connect: (base: string) => Exporter<T>;
  #connected: { readonly base: string; readonly exporter: Exporter<T> } | undefined;
  #fault: string | undefined = 'nothing was exported yet';

  /** @param endpoint base URL of the receiver; undefined while it does not listen */
  constructor(endpoint: () => string | undefined, connect: (base: string) => Exporter<T>) {
    this.#endpoint = endpoint;
    this.#connect = connect;
  }

  /** Why the last export failed; undefined when it did not. */
  get fault(): string | undefined {
    return this.#fault;
  }

  export(items: T, report: (result: ExportResult) => void): void {
    const done = (result: ExportResult) => {
      this.#fault = result.code === FAILED ? (result.error?.message ?? 'it failed') : undefined;
      report(result);
    };
    const base = this.#endpoint() ?? this.#connected?.base;
    if (base === undefined) {
      done({ code: FAILED, error: new Error('the receiver does not listen yet') });
      return;
    }
    if (this.#connected?.base !== base) this.#connected = { base, exporter: this.#connect(base) };
    this.#connected.exporter.export(items, done);
  }

  async forceFlush(): Promise<void> {
    await this.#connected?.exporter.forceFlush?.();
  }

  async shutdown(): Promise<void> {
    await this.#connected?.exporter.shutdown();
  }
}
