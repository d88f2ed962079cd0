import { ReadWindow } from '../nats/read-window.ts';
import type { LinearStream, StreamMessage } from '../nats/stream.ts';
import type { ChainPlace } from './batch.ts';
import type { MirrorBody, MirrorEntry } from './message.ts';
import { entriesOf } from './stream-lines.ts';

type Stream = Pick<LinearStream, 'last' | 'lastOf' | 'read' | 'look'>;

/** Fences and the like, but for forged messages, that may stand between the states and the records before them. */
const LOOK_BACK = 32;

/**
 * The newest states on a host's stream, and by them a record that counts.
 *
 * @param subject of states
 * @param before what stands from this message on is left out
 * @returns undefined when there are none that count: the stream has to be read from its begin
 */
export async function newestStates(
  stream: Stream,
  subject: string,
  before: number,
): Promise<MirrorBody | undefined> {
  const last = await newestBefore(stream, subject, before);
  if (!last) return undefined;
  const parts = Number(/\/(\d+)$/.exec(last.headers['Hf-Part'] ?? '1/1')?.[1]);
  const first = last.seq - parts + 1;
  let found: MirrorEntry | undefined;
  for await (const entry of entriesOf(stream.read(first, last.seq))) found = entry;
  const place = await placeBefore(stream, first);
  // They were sent when nothing else was under way: so the records right before them count.
  if (found?.kind !== 'states') return undefined;
  return found.to === place?.seq && found.hash === place.hash ? found : undefined;
}

/** The newest message of a subject that its host wrote; what stands behind a fence holds what no longer counts. */
async function newestBefore(
  stream: Stream,
  subject: string,
  before: number,
): Promise<StreamMessage | undefined> {
  const newest = await stream.lastOf(subject);
  if (!newest || (newest.message && newest.message.seq < before)) return newest?.message;
  // The server tells only the newest one, which may be anybody's. Those of its host are no more than some 2,000 records apart.
  for await (const message of backwards(stream, before)) if (message.subject === subject) return message;
  return undefined;
}

/** The last record before a message. */
async function placeBefore(stream: Stream, streamSeq: number): Promise<ChainPlace | undefined> {
  let looked = 0;
  for await (const { headers } of backwards(stream, streamSeq)) {
    const kind = headers['Hf-Kind'];
    if (kind === 'records' || kind === 'begin')
      return { seq: Number(headers['Hf-To']), hash: headers['Hf-Hash'] ?? '' };
    looked += 1;
    if (looked === LOOK_BACK) return undefined;
  }
  return undefined;
}

/** What hosts of the cluster wrote before a message, the newest first: as many at once as while reading on. */
async function* backwards(stream: Stream, before: number): AsyncGenerator<StreamMessage> {
  const { firstSeq } = await stream.last();
  const window = new ReadWindow();
  for (let to = before - 1; to >= firstSeq; ) {
    const size = Math.min(window.size, to - firstSeq + 1);
    const from = to;
    const looks = await Promise.all(
      Array.from({ length: size }, (_, i) => window.asked(stream.look(from - i))),
    );
    for (const look of looks) {
      window.came(look?.bytes ?? 0);
      if (look?.message) yield look.message;
    }
    to -= size;
  }
}
