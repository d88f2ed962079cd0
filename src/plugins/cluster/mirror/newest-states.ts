import type { LinearStream, StreamMessage } from '../nats/stream.ts';
import type { MirrorBody, MirrorEntry } from './message.ts';
import { entriesOf } from './stream-lines.ts';

// States of actors on a host's stream: reading begins there. Each names the message that it stands behind, and its host sends them when
// everything before has been read back: so what they tell counts, whatever stands there.

type Stream = Pick<LinearStream, 'lastOf' | 'read' | 'look'>;

/**
 * The newest states on a host's stream, as far as the server tells.
 *
 * @param subject of states
 * @param before what stands from this message on is left out
 * @returns undefined when there are none, and when the newest message of the subject is anybody's, or stands too late
 */
export async function newestStates(
  stream: Stream,
  subject: string,
  before: number,
): Promise<MirrorBody | undefined> {
  const message = (await stream.lastOf(subject))?.message;
  return message && message.seq < before ? statesEndingWith(stream, message) : undefined;
}

/** The states that end with a message. @returns undefined when none do, or not any more */
export async function statesAt(stream: Stream, streamSeq: number): Promise<MirrorBody | undefined> {
  const message = (await stream.look(streamSeq))?.message;
  return message && statesEndingWith(stream, message);
}

async function statesEndingWith(
  stream: Stream,
  { seq, headers }: StreamMessage,
): Promise<MirrorBody | undefined> {
  const parts = Number(/\/(\d+)$/.exec(headers['Hf-Part'] ?? '1/1')?.[1]);
  let found: MirrorEntry | undefined;
  for await (const entry of entriesOf(stream.read(seq - parts + 1, seq))) found = entry;
  return found?.kind === 'states' ? found : undefined;
}
