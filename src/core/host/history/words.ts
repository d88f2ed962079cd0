import type { ActorDefinition, RecordWords } from '../../kernel/actors/definition.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import type { LogRecord } from '../../kernel/log/record.ts';
import { isFailure } from './select.ts';

/** Describes a record in its plugin's words: undefined when the plugin has none, empty when the record is routine. */
export type Describe = (record: LogRecord) => string | undefined;

/** Texts of which each failure has one, whatever plugins say. */
const FAILURE_MARKS = ['"failed"', '"effect.failed"', '"effect.lost"'];

/** Texts without which no record says that something failed or was refused: most records need not be read. */
export function problemMarks(known: readonly ActorDefinition[]): string[] {
  return [...new Set([...FAILURE_MARKS, ...known.flatMap(({ describe }) => describe?.problem?.marks ?? [])])];
}

/** Where words are found, and who is told where that fails. */
export interface WordsSource {
  readonly wordsOf: (types: Iterable<string>) => Promise<RecordWords>;
  readonly note: (line: string) => void;
}

/**
 * The plugins' own words for records. They are loaded by actor type, before the first record of a type is described:
 * most lines of a log come from few features, and loading all of them takes longer than reading the log.
 */
export class PluginWords {
  readonly #context: WordsSource;
  readonly #words = new Map<string, RecordWords[string]>();
  /** Actor types whose words were looked for. */
  readonly #types = new Set<string>();
  #hasNoted = false;

  constructor(context: WordsSource) {
    this.#context = context;
  }

  /** Loads the words for the actors of these records. Where that fails, their lines show the fields of the events. */
  async prepare(records: Iterable<Pick<LogRecord, 'actor'>>): Promise<void> {
    for (const { actor } of records) {
      const { type } = parseActorRef(actor);
      if (this.#types.has(type)) continue;
      this.#types.add(type);
      await this.#load(type);
    }
  }

  async #load(type: string): Promise<void> {
    try {
      for (const [each, words] of Object.entries(await this.#context.wordsOf([type])))
        this.#words.set(each, words);
    } catch (error) {
      if (this.#hasNoted || isCoded(error, 'HF_CONFIG_NOT_FOUND')) return;
      this.#hasNoted = true;
      const reason = error instanceof Error ? error.message : error;
      this.#context.note(`The plugins' descriptions of records are missing. ${reason}`);
    }
  }

  /**
   * Whether a record says that something failed or was refused: a machine threw, an effect failed or was lost with the
   * process, or its plugin says so. Its actor was prepared.
   */
  readonly isProblem = (record: LogRecord): boolean => {
    if (isFailure(record)) return true;
    try {
      return this.#words.get(parseActorRef(record.actor).type)?.problem?.is(record) === true;
    } catch {
      return false; // perhaps a record of another release
    }
  };

  /** The same of any record, as the part of a selection. */
  readonly problemsOnly = {
    only: async (record: LogRecord): Promise<boolean> => {
      await this.prepare([record]);
      return this.isProblem(record);
    },
  };

  /** What a record says in its plugin's words. An arrow function, because it is handed on. */
  readonly describe: Describe = (record) => {
    try {
      return this.#words.get(parseActorRef(record.actor).type)?.(record);
    } catch {
      return undefined; // perhaps a record of another release: its fields are shown instead
    }
  };
}
