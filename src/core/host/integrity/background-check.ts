import { type ChildProcess, fork } from 'node:child_process';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Bus } from '../../../bus/bus.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import { HostError } from '../errors/host-error.ts';
import type { Logger } from '../logging/logger.ts';
import { RecurringWork } from '../recurring-work.ts';
import { dataChecked } from './actor.ts';
import type { CheckRequest } from './check.ts';
import type { CheckerMessage } from './checker.ts';
import { type DataCheckResult, textOf } from './findings.ts';
import { DATA_CHECK, dataFact, lastCheckOf } from './records.ts';

/** The first check waits until a start has settled; then one comes each day. Milliseconds. */
const FIRST_MS = 5_000;
const EVERY_MS = 86_400_000;
/** A check that could not be finished is tried again after this, milliseconds. */
const RETRY_MS = 3_600_000;
/** The largest heap of the checking process: room for the JSON of a large record, and little of a small machine. */
const HEAP_MIB = 192;
/** The lowest priority of processes, as `nice` counts. */
const LOWEST_PRIORITY = 19;

interface Services {
  readonly bus: Bus;
  readonly log: EventLog;
  readonly actors: ActorSystem;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Reads the whole data folder once after a start and then once a day (C9), in a process of its own: its memory goes back
 * when it ends, and the system schedules it after everything else.
 */
export class BackgroundCheck {
  readonly #request: CheckRequest;
  readonly #services: Services;
  readonly #work: RecurringWork<DataCheckResult>;
  #checker: ChildProcess | undefined;
  #part: number | undefined;
  #failed: string | undefined;
  #hasChecked = false;
  #ended: Promise<void> = Promise.resolve();

  constructor(request: CheckRequest, services: Services) {
    this.#request = request;
    this.#services = services;
    const { clock, logger } = services;
    this.#work = new RecurringWork({
      ...{ clock, firstMs: FIRST_MS, everyMs: EVERY_MS, retryMs: () => RETRY_MS },
      work: () => this.#check(),
      onFailure: (error) => {
        this.#failed = error instanceof Error ? error.message : String(error);
        logger.error({ err: error }, 'data.check_failed');
      },
    });
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
  run(): Promise<DataCheckResult> {
    return this.#work.run();
  }

  /** Ends what is under way, and begins nothing new. */
  async stop(): Promise<void> {
    const ended = this.#work.stop();
    this.#checker?.kill('SIGKILL');
    await ended;
  }

  async #check(): Promise<DataCheckResult> {
    this.#part = 0;
    const began = performance.now();
    try {
      const found = await this.#read();
      const at = this.#services.clock.now();
      const result = { ...found, at, tookMs: Math.round(performance.now() - began) };
      await this.#record(result);
      return result;
    } finally {
      this.#part = undefined;
    }
  }

  async #record(result: DataCheckResult): Promise<void> {
    const { bus, log, logger } = this.#services;
    for (const finding of result.findings)
      logger[finding.kind === 'changed' ? 'warn' : 'error'](
        { ...finding, text: textOf(finding) },
        'data.finding',
      );
    bus.publish(dataChecked, result);
    await log.whenDurable(log.lastSeq());
    this.#checker?.send('recorded', () => {});
    await this.#ended;
    this.#failed = undefined;
    this.#hasChecked = true;
    logger.info(
      { findings: result.findings.length, records: result.records, files: result.files },
      'data.checked',
    );
  }

  #read(): Promise<Omit<DataCheckResult, 'at' | 'tookMs'>> {
    const { promise, resolve, reject } = Promise.withResolvers<Omit<DataCheckResult, 'at' | 'tookMs'>>();
    const ended = Promise.withResolvers<void>();
    this.#ended = ended.promise;
    let failure: string | undefined;
    const checker = startChecker(this.#request);
    this.#checker = checker;
    checker.on('message', (message: CheckerMessage) => {
      if (message.kind === 'progress') this.#part = message.part;
      else if (message.kind === 'checked') resolve(message.result);
      else failure = message.reason;
    });
    checker.once('error', (error) => {
      failure = error.message;
    });
    checker.once('close', (code, signal) => {
      this.#checker = undefined;
      ended.resolve();
      const reason = failure ?? `the process that checks ended with ${signal ?? `code ${code}`}`;
      reject(new HostError('HF_DATA_CHECK', { reason }));
    });
    return promise;
  }
}

/** Starts the checker from source or compiled, whichever runs. It gets no variable of the environment that may be a secret. */
function startChecker(request: CheckRequest): ChildProcess {
  const { url } = import.meta;
  const module = fileURLToPath(new URL(`./checker${url.endsWith('.ts') ? '.ts' : '.js'}`, url));
  const { NODE_OPTIONS, NODE_COMPILE_CACHE } = process.env;
  const checker = fork(module, [], {
    execArgv: [`--max-old-space-size=${HEAP_MIB}`, '--disable-warning=ExperimentalWarning'],
    env: { ...(NODE_OPTIONS && { NODE_OPTIONS }), ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }) },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  try {
    if (checker.pid !== undefined) setPriority(checker.pid, LOWEST_PRIORITY);
  } catch {
    // The pauses of the checker are all that keeps it slow.
  }
  checker.send(request, () => {});
  checker.unref();
  checker.channel?.unref();
  return checker;
}
