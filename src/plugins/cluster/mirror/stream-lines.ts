import { Assembler, Counting, type MirrorEntry, type StreamedMessage, textsOf } from './message.ts';

/** The messages of a host's stream, put together; what is none of ours is left out. */
export async function* entriesOf(messages: AsyncIterable<StreamedMessage>): AsyncGenerator<MirrorEntry> {
  const assembler = new Assembler();
  for await (const message of messages) {
    const entry = assembler.add(message);
    if (entry) yield entry;
  }
}

/**
 * The log in a host's stream, as the lines of a portable file: the header, the states before the first record, the records
 * and their signatures. States that were saved later, and fences, are no part of it.
 */
export async function* linesOfEntries(
  entries: AsyncIterable<MirrorEntry>,
): AsyncGenerator<{ readonly text: string; readonly line: number }> {
  let line = 0;
  const counting = new Counting();
  for await (const entry of entries) {
    if (!counting.counts(entry) || !('body' in entry)) continue;
    for (const text of textsOf(entry.body)) {
      line += 1;
      yield { text, line };
    }
  }
}
