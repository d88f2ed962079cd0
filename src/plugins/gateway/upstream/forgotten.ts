import type { Message } from '../mcp/message.ts';
import type { UpstreamAnswer } from './client.ts';

const ID = 'holdfast';
const PING: Message = {
  kind: 'request',
  method: 'ping',
  id: ID,
  name: undefined,
  revision: undefined,
  body: { jsonrpc: '2.0', id: ID, method: 'ping' },
};

/**
 * Whether an upstream has forgotten a session. 404 says so by itself; some servers answer 400 to that as to much else,
 * and a ping in the same session that fares no better tells.
 *
 * @param status of its answer to a request in that session
 * @param ping sends a message in that session
 */
export async function hasForgotten(
  status: number,
  ping: (message: Message) => Promise<UpstreamAnswer>,
): Promise<boolean> {
  if (status !== 400) return status === 404;
  try {
    const pong = await ping(PING);
    void pong.body.dump();
    return pong.statusCode === 400 || pong.statusCode === 404;
  } catch {
    return false;
  }
}
