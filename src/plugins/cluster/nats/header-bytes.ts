import type { StoredMsg } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/transport-node';
import { z } from 'zod';
import { ClusterError } from '../errors.ts';

// The client of NATS decodes headers whenever it is asked for them, in a time that grows with the square of their number, and has no documented way to
// tell their size before. What it keeps is read here and nowhere else, and a client that keeps it otherwise is refused.

/** @returns bytes of a message beside its body, before its headers are decoded. @throws HF_CLUSTER_CLIENT */
export function headerBytes(message: Pick<Msg, 'data'>): number {
  if (!('size' in message) || typeof message.size !== 'function') throw unfit('size()');
  return Number(message.size()) - message.data.length;
}

/** As JetStream answers: in base64, absent where there are none. */
const answered = z.object({ smr: z.object({ message: z.object({ hdrs: z.string().optional() }) }) });

/** @returns the same of a message that is stored, but for its subject. @throws HF_CLUSTER_CLIENT */
export function storedHeaderBytes(stored: StoredMsg): number {
  const { data } = answered.safeParse(stored);
  if (!data) throw unfit('smr');
  return Math.ceil((data.smr.message.hdrs ?? '').length * (3 / 4));
}

/**
 * Looks, before anything is read, whether the client tells what is needed of a message.
 *
 * @param transport the package @nats-io/transport-node
 * @throws HF_CLUSTER_CLIENT
 */
export function checkClient({ MsgImpl }: Pick<typeof import('@nats-io/transport-node'), 'MsgImpl'>): void {
  const [subject, headers, body] = ['a', 'NATS/1.0\r\nb: c\r\n\r\n', 'd'].map((text) => Buffer.from(text));
  if (!subject || !headers || !body || typeof MsgImpl !== 'function') throw unfit('MsgImpl');
  const argument = { subject, sid: 1, hdr: headers.length, size: headers.length + body.length };
  const message = new MsgImpl(argument, Buffer.concat([headers, body]), { publish: () => {} });
  if (headerBytes(message) !== subject.length + headers.length) throw unfit('size()');
}

function unfit(lacks: string): Error {
  return new ClusterError('HF_CLUSTER_CLIENT', { lacks });
}
