import type { ActorDefinition, RecordWords } from '../../kernel/actors/definition.ts';
import type { HistoryReader } from '../../kernel/log/event-log.ts';
import { openReader } from '../../kernel/log/portable/open-reader.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import type { StoppedReports } from '../plugin/definition.ts';
import type { Registrations } from '../plugin/registrations.ts';

/** A log that is asked questions: of the running instance, of a data folder where none runs, or of an exported file. */
export interface LogSource {
  readonly mode: 'live' | 'folder' | 'file';
  /** The data folder, or the file; absolute. */
  readonly place: string;
  /** Opens it for one question, which closes it with `close`. @throws HF_LOG_*, HF_PORTABLE_* */
  open(): Promise<OpenedLog>;
  /** The words for the records of some types of actors. */
  wordsOf(types: Iterable<string>): Promise<RecordWords>;
  /** The types of actors whose machines are known here. */
  actors(): Promise<readonly ActorDefinition[]>;
  /** What plugins report of the states of some types of actors. */
  stoppedReports(types: Iterable<string>): Promise<StoppedReports>;
  /** The plugins that are known here, and what they contribute without being started. */
  declared(): Promise<Pick<Registrations, 'plugins' | 'health' | 'contributions'>>;
}

/** A log that is open for one question. */
export interface OpenedLog {
  readonly log: HistoryReader;
  close(): void;
}

/** Opens a data folder anew for each question, also while an instance writes it. */
export function openFolder(dataDir: string): Promise<OpenedLog> {
  const log = new SqliteReader(dataDir);
  return Promise.resolve({ log, close: () => log.close() });
}

/** Reads a portable file once, at the first question; it stays open until `close`. */
export class OpenedFile {
  readonly #file: string;
  #log: Promise<SqliteReader> | undefined;

  /** @param file absolute */
  constructor(file: string) {
    this.#file = file;
  }

  /** @throws HF_PORTABLE_* */
  async open(): Promise<OpenedLog> {
    this.#log ??= openReader(this.#file);
    return { log: await this.#log, close: () => {} };
  }

  async close(): Promise<void> {
    (await this.#log)?.close();
  }
}
