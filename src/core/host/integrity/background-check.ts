import type { Worker } from 'node:worker_threads';
import type { Bus } from '../../../bus/bus.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import { startWorker } from '../../kernel/worker.ts';
import { HostError } from '../errors/host-error.ts';
import type { Logger } from '../logging/logger.ts';
import { dataChecked } from './actor.ts';
import type { CheckRequest } from './check.ts';
import type { CheckerMessage } from './checker.ts';
import { type CheckResult, textOf } from './findings.ts';
import { DATA_CHECK, dataFact, lastCheckOf } from './records.ts';

/** The start has enough to do; after it, once a day. Milliseconds. */
const FIRST_MS = 5_000;
const EVERY_MS = 86_400_000;
/** A check that could not be finished is tried again. */
const RETRY_MS = 3_600_000;
/** Old enough for the JSON of a large record, far less than would hurt. */
const HEAP_MIB = 192;

interface Services {
  readonly bus: Bus;
  readonly log: EventLog;
  readonly actors: ActorSystem;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Reads the whole data folder once after a start and then once a day, in a thread of its own (C9). */
export class BackgroundCheck {
  readonly #request: CheckRequest;
  readonly #services: Services;
  #cancel: () => void;
  #worker: Worker | undefined;
  #running: Promise<CheckResult> | undefined;
  #part: number | undefined;
  #failed: string | undefined;
  #hasChecked = false;
  #ended: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(request: CheckRequest, services: Services) {
    this.#request = request;
    this.#services = services;
    this.#cancel = services.clock.after(FIRST_MS, () => this.#due());
  }

  /** The fact of health pages. */
  fact(): Json {
    const { actors, clock } = this.#services;
    const part = this.#part;
    const working =
      part === undefined
        ? this.#failed && `the newest check failed: ${this.#failed}`
        : `a check is under way: ${Math.round(part * 100)} % are read`;
    const last = lastCheckOf(actors.snapshot(DATA_CHECK));
    return dataFact(last, clock.now(), { checked: this.#hasChecked, working });
  }

  /**
   * Checks now, or waits for the check that is under way.
   *
   * @returns what it found, when that is recorded
   * @throws HF_DATA_CHECK it could not be finished
   */
  run(): Promise<CheckResult> {
    this.#running ??= this.#check().finally(() => {
      this.#running = undefined;
      this.#part = undefined;
    });
    return this.#running;
  }

  /** Ends what is under way, and begins nothing new. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#worker?.terminate();
    await this.#running?.catch(() => {});
  }

  #due(): void {
    const { clock, logger } = this.#services;
    const again = (ms: number) => {
      if (!this.#stopped) this.#cancel = clock.after(ms, () => this.#due());
    };
    this.run().then(
      () => again(EVERY_MS),
      (error: unknown) => {
        if (this.#stopped) return;
        this.#failed = error instanceof Error ? error.message : String(error);
        logger.error({ err: error }, 'data.check_failed');
        again(RETRY_MS);
      },
    );
  }

  async #check(): Promise<CheckResult> {
    const { bus, log, clock, logger } = this.#services;
    this.#part = 0;
    const began = performance.now();
    const found = await this.#read();
    const at = clock.now();
    const result: CheckResult = { ...found, at, tookMs: Math.round(performance.now() - began) };
    for (const finding of result.findings)
      logger[finding.kind === 'changed' ? 'warn' : 'error'](
        { ...finding, text: textOf(finding) },
        'data.finding',
      );
    bus.publish(dataChecked, result);
    await log.whenDurable(log.lastSeq());
    this.#worker?.postMessage('recorded');
    await this.#ended;
    this.#failed = undefined;
    this.#hasChecked = true;
    logger.info(
      { findings: result.findings.length, records: result.records, files: result.files },
      'data.checked',
    );
    return result;
  }

  #read(): Promise<Omit<CheckResult, 'at' | 'tookMs'>> {
    const { promise, resolve, reject } = Promise.withResolvers<Omit<CheckResult, 'at' | 'tookMs'>>();
    const ended = Promise.withResolvers<void>();
    this.#ended = ended.promise;
    this.#worker = startWorker({
      module: './checker',
      base: import.meta.url,
      name: 'data-checker',
      data: this.#request,
      heapMiB: HEAP_MIB,
      onMessage: (message: CheckerMessage) => {
        if (message.kind === 'progress') this.#part = message.part;
        else resolve(message.result);
      },
      onEnd: (reason) => {
        this.#worker = undefined;
        ended.resolve();
        reject(new HostError('HF_DATA_CHECK', { reason }));
      },
    });
    return promise;
  }
}
