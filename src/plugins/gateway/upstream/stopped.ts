import { keyEnded } from '../mcp/answers.ts';
import { type Ending, KEY_ENDED } from '../stop.ts';
import type { Told } from './outcome.ts';
import type { PassParts } from './pass-parts.ts';

/**
 * Ends a call whose client has left, whose key was ended, or that a stop cuts short.
 *
 * @param asEvents a stream may end at any event; anything else would look whole
 */
export function stopped(
  { exchange }: Pick<PassParts, 'exchange'>,
  { reason }: Ending,
  asEvents: boolean,
): Told {
  if (exchange.gone.aborted) return { outcome: 'cancelled' };
  if (!exchange.begun && reason === KEY_ENDED) exchange.send(keyEnded);
  else if (!exchange.begun) exchange.send({ status: 503, body: { detail: 'The gateway is stopping.' } });
  else if (asEvents) exchange.end();
  else exchange.cut();
  return { outcome: 'cut' };
}
