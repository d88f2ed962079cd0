import { Readable } from 'node:stream';
import type { Clock } from '../../core/kernel/clock.ts';
import type { EngineClient } from './engine/client.ts';
import { READING_DEADLINE_MS } from './limits.ts';

/**
 * The digest of every point of a collection as of one moment, by id, taken of the rows: JSON lists of points, one a line,
 * and an empty one after the last. A client that does not read on holds the reading open for ten minutes at most.
 *
 * @throws HF_MEMORY_STORE_COLLECTION_MISSING, HF_MEMORY_STORE_BUSY too many readings are open
 */
export async function digestsOf(engine: EngineClient, collection: string, clock: Clock): Promise<Readable> {
  const number = await engine.call('openReading', collection);
  const of = () => new TextEncoder().encode(number); // a body's memory moves to the engine's thread
  const pages = async function* () {
    let page: string;
    do {
      page = await engine.call('readOn', collection, of());
      yield `${page}\n`;
    } while (page !== '[]');
  };
  const stream = Readable.from(pages(), { objectMode: true, highWaterMark: 1 });
  const cancel = clock.after(READING_DEADLINE_MS, () => stream.destroy());
  stream.once('close', () => {
    cancel();
    engine.call('closeReading', collection, of()).catch(() => {}); // the engine has ended, and its readings too
  });
  return stream;
}
