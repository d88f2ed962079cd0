import type { LinearStream } from '../nats/stream.ts';
import type { ChainPlace } from './batch.ts';
import type { MirrorBody, MirrorEntry } from './message.ts';
import { entriesOf } from './stream-lines.ts';

type Stream = Pick<LinearStream, 'lastOf' | 'read' | 'get'>;

/** Fences and the like that may stand between the states and the records before them. */
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
  const last = await stream.lastOf(subject);
  // What was saved behind a fence holds what no longer counts.
  if (!last || last.seq >= before) return undefined;
  const parts = Number(/\/(\d+)$/.exec(last.headers['Hf-Part'] ?? '1/1')?.[1]);
  const first = last.seq - parts + 1;
  let found: MirrorEntry | undefined;
  for await (const entry of entriesOf(stream.read(first, last.seq))) found = entry;
  const place = await placeBefore(stream, first);
  // They were sent when nothing else was under way: so the records right before them count.
  if (found?.kind !== 'states') return undefined;
  return found.to === place?.seq && found.hash === place.hash ? found : undefined;
}

/** The last record before a message. */
async function placeBefore(stream: Stream, streamSeq: number): Promise<ChainPlace | undefined> {
  for (let from = streamSeq - 1; from > Math.max(0, streamSeq - LOOK_BACK); from -= 1) {
    const message = await stream.get(from);
    const kind = message?.headers['Hf-Kind'];
    if (message && (kind === 'records' || kind === 'begin'))
      return { seq: Number(message.headers['Hf-To']), hash: message.headers['Hf-Hash'] ?? '' };
  }
  return undefined;
}
