import type { HistoryReader } from '../../kernel/log/event-log.ts';
import { Semaphore } from '../concurrency.ts';
import type { Logger } from '../logging/logger.ts';
import type { LogSource } from './log-source.ts';
import { PluginWords } from './words.ts';

/** What an answer is made from: the log as it is now, open for the time of one question. */
export interface LogQuestion {
  readonly log: HistoryReader;
  readonly words: PluginWords;
  /** Aborted when nobody waits any more, and at the deadline. */
  readonly signal: AbortSignal;
  /** When a search stops and answers with what it has; by `performance.now`. */
  readonly enoughAt: number;
}

/** The part of the deadline after which a search that had to wait for its turn ends with what it has, too. */
const LATEST_ENOUGH = 0.8;

export interface QuestionLimits {
  /** By when an answer must be there, milliseconds. */
  readonly deadlineMs: number;
  /** A search that takes so long answers with what it has, milliseconds. */
  readonly enoughMs: number;
  /** Asked at once; more wait, so that questions never take more than a part of the processor. */
  readonly atOnce: number;
  /** The error of a question that took longer than its deadline. */
  readonly late: () => Error;
}

/** Answers questions from one log, a few at a time and each until a deadline. */
export class LogQuestions {
  readonly #source: LogSource;
  readonly #limits: QuestionLimits;
  readonly #permits: Semaphore;
  readonly #logger: Logger | undefined;

  constructor(source: LogSource, limits: QuestionLimits, logger?: Logger) {
    this.#source = source;
    this.#limits = limits;
    this.#permits = new Semaphore(limits.atOnce);
    this.#logger = logger;
  }

  /**
   * @param gone aborted when nobody waits for the answer any more
   * @throws what `late` makes; what `work` throws; HF_LOG_*
   */
  async ask<T>(work: (question: LogQuestion) => Promise<T>, gone: AbortSignal): Promise<T> {
    const { deadlineMs, enoughMs, late: error } = this.#limits;
    const late = AbortSignal.timeout(deadlineMs);
    const signal = AbortSignal.any([gone, late]);
    const latest = performance.now() + deadlineMs * LATEST_ENOUGH;
    try {
      return await this.#permits.run(async () => {
        signal.throwIfAborted();
        const enoughAt = Math.min(performance.now() + enoughMs, latest);
        const { log, close } = await this.#source.open();
        try {
          return await work({ log, words: this.words(), signal, enoughAt });
        } finally {
          close();
        }
      });
    } catch (problem) {
      if (problem !== late.reason || !late.aborted) throw problem;
      throw error();
    }
  }

  /** The plugins' words for what a question reads. */
  words(): PluginWords {
    return new PluginWords({
      wordsOf: (types) => this.#source.wordsOf(types),
      note: (line) => this.#logger?.warn({ reason: line }, 'history.words_missing'),
    });
  }
}
