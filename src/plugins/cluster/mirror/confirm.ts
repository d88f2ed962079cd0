import { type Clock, passed } from '../../../core/kernel/clock.ts';
import { MESSAGE_ID } from '../nats/seal.ts';
import type { LinearStream } from '../nats/stream.ts';
import { StreamConflict, StreamUnknown } from '../nats/stream-errors.ts';

/** What is not there yet is looked for again after these, milliseconds: somebody else may have acknowledged it early. */
const AGAIN_MS = [2, 10, 50, 250, 1_000];

/**
 * Reads a message back. An acknowledgement proves nothing: whoever is in the account can answer in the server's place, and a leader
 * that loses its term may acknowledge what is lost. The message that is read has the code of the cluster's key.
 *
 * @param seq its place in the stream
 * @param id as it was sent; no other message has it
 * @throws StreamConflict another message stands there
 * @throws StreamUnknown nothing stands there
 * @throws StreamGone, StreamUnavailable, HF_CLUSTER_UNREACHABLE
 */
export async function confirm(
  stream: Pick<LinearStream, 'name' | 'look'>,
  { seq, id }: { readonly seq: number; readonly id: string },
  clock: Clock,
): Promise<void> {
  for (const ms of [0, ...AGAIN_MS]) {
    if (ms > 0) await passed(clock, ms);
    const found = await stream.look(seq);
    if (found?.message?.headers[MESSAGE_ID] === id) return;
    if (found) throw new StreamConflict(stream.name, seq - 1, seq);
  }
  throw new StreamUnknown(stream.name, `message ${seq} was acknowledged and is not there`);
}
