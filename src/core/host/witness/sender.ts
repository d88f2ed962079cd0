import type { Bus } from '../../../bus/bus.ts';
import { alertRaised } from '../../contracts/alerts.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import type { Signature } from '../../kernel/log/signing.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import { withDeadline } from '../deadline.ts';
import type { Logger } from '../logging/logger.ts';
import { maskText } from '../logging/mask-text.ts';
import { RecurringWork } from '../recurring-work.ts';
import { duration } from '../terminal.ts';
import type { Witness } from './witness.ts';

/** A signature is looked for so long after a commit: many commits share one look. Milliseconds. */
const LOOK_MS = 2_000;
/** One attempt. A mount that hangs blocks a thread of the pool, and nothing else. */
const DEADLINE_MS = 15_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 300_000;
/** At a stop the last head is sent once. */
const LAST_MS = 5_000;
/** A head vouches for all records before it: of those that wait, the oldest may be left out. */
const WAITING = 1_000;
/** A person is told after so many failures in a row, a second or so apart at first. */
const ALERT_AFTER = 4;

interface Services {
  readonly bus: Pick<Bus, 'publish'>;
  readonly log: EventLog;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Sends the signed heads of the log to a witness, and goes on trying while it cannot be reached. */
export class WitnessSender {
  readonly #witness: Witness;
  readonly #dataDir: string;
  readonly #services: Services;
  #cancelLook: (() => void) | undefined;
  #waiting: Signature[] = [];
  /** The newest head that was found in the log, and that the witness has. */
  #found = 0;
  #sent = 0;
  #failedSince: number | undefined;
  #reason = '';
  #isAlerted = false;
  readonly #sending: RecurringWork<void>;
  /** Resolves when nothing is being sent any more. */
  #ended: Promise<void> | undefined;
  #reader: SqliteReader | undefined;
  #stopped = false;

  constructor(witness: Witness, dataDir: string, services: Services) {
    this.#witness = witness;
    this.#dataDir = dataDir;
    this.#services = services;
    this.#sending = new RecurringWork({
      clock: services.clock,
      retryMs: (failures) => Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LONGEST_RETRY_MS),
      work: () => this.#send(DEADLINE_MS),
      onFailure: (error, failures) => this.#failed(error, failures),
    });
    services.log.onDurable(() => this.#lookSoon());
    this.#lookSoon();
  }

  /** The fact of health pages. */
  fact(): Json {
    const { clock, log } = this.#services;
    const { place } = this.#witness;
    const behind = log.lastSeq() - this.#sent;
    const since = this.#failedSince;
    const facts = { place, sent: this.#sent, behind, waiting: this.#waiting.length };
    if (since === undefined) {
      const text =
        this.#sent === 0
          ? `${place} has got no head since this start`
          : `${place} has record ${this.#sent}, ${behind} behind`;
      return { ...facts, state: this.#sent === 0 ? 'unknown' : 'ok', text };
    }
    const ago = duration(Math.max(0, clock.now() - since));
    const reason = `${place} cannot be reached for ${ago} (${this.#reason}); it is ${behind} records behind`;
    return { ...facts, ok: false, state: 'unreachable', reason, text: reason };
  }

  /** Ends the retries, and lets go of the log. */
  stop(): void {
    this.#stopped = true;
    this.#cancelLook?.();
    this.#ended ??= this.#sending.stop();
    this.#reader?.close();
    this.#reader = undefined;
  }

  /** Sends what the close of the log signed, once. Call it when the log is closed. */
  async finish(): Promise<void> {
    await this.#ended;
    this.#look();
    this.#reader?.close();
    if (this.#waiting.length === 0) return;
    await this.#send(LAST_MS).catch((error: unknown) => this.#failed(error));
  }

  #lookSoon(): void {
    if (this.#stopped) return;
    this.#cancelLook ??= this.#services.clock.after(LOOK_MS, () => {
      this.#cancelLook = undefined;
      this.#look();
      this.#sendNow();
    });
  }

  #look(): void {
    try {
      this.#reader ??= new SqliteReader(this.#dataDir);
      const newest = this.#reader.newestSignedSeq();
      if (newest <= this.#found) return;
      const heads = this.#reader.signatures(this.#found === 0 ? newest : this.#found + 1);
      this.#found = newest;
      this.#waiting = [...this.#waiting, ...heads].slice(-WAITING);
    } catch (error) {
      this.#services.logger.warn({ err: error }, 'witness.log_unreadable');
    }
  }

  #sendNow(): void {
    if (this.#waiting.length === 0 || this.#stopped || this.#sending.isDue) return;
    this.#sending.run().then(
      () => this.#sendNow(), // what was found meanwhile
      () => {},
    );
  }

  async #send(deadlineMs: number): Promise<void> {
    const { clock } = this.#services;
    const heads = this.#waiting.map((signature) => ({ ...signature, at: clock.now() }));
    const newest = heads.at(-1)?.seq ?? 0;
    // In real time: a disk or a network hangs whatever the runtime's clock says.
    const late = () => new Error(`no answer within ${deadlineMs / 1_000} s`);
    await withDeadline({ ms: deadlineMs, late }, (signal) => this.#witness.send(heads, signal));
    this.#waiting = this.#waiting.filter(({ seq }) => seq > newest);
    this.#sent = newest;
    this.#reached();
  }

  /** @param failures in a row */
  #failed(error: unknown, failures = 0): void {
    const { clock, logger } = this.#services;
    this.#failedSince ??= clock.now();
    this.#reason = maskText(error instanceof Error ? error.message : String(error));
    logger.warn(
      { place: this.#witness.place, reason: this.#reason, waiting: this.#waiting.length },
      'witness.unreachable',
    );
    if (failures === ALERT_AFTER) this.#alert('firing');
  }

  #reached(): void {
    this.#failedSince = undefined;
    if (this.#isAlerted) this.#alert('resolved');
  }

  #alert(state: 'firing' | 'resolved'): void {
    const { place } = this.#witness;
    this.#isAlerted = state === 'firing';
    const text =
      state === 'firing'
        ? `The witness ${place} cannot be reached (${this.#reason}): what the log records from now on could be rewritten unseen by who has its key.`
        : `The witness ${place} can be reached again and has record ${this.#sent}.`;
    const severity = state === 'firing' ? 'warning' : 'info';
    this.#services.bus.publish(alertRaised, {
      name: 'witness.unreachable',
      severity,
      text,
      labels: { place, state },
    });
  }
}
