import type { GatewayParts } from '../calls/parts.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import type { Message } from '../mcp/message.ts';
import type { Session } from '../session/sealed-sessions.ts';
import type { Ending } from '../stop.ts';
import type { Legs, OpenSession } from './legs.ts';
import type { Meaning } from './meaning.ts';
import type { Selection } from './selection.ts';

/** What a request to the aggregate consists of, beside what is decided about it. */
export interface AggregateCallParts {
  readonly gateway: GatewayParts;
  readonly exchange: Exchange;
  readonly caller: AuthenticatedKey;
  readonly selection: Selection;
  readonly message: Message | undefined;
  readonly meaning: Meaning;
  /** None in the stateless revision, and while it begins. */
  readonly session: OpenSession | undefined;
  readonly legs: Legs;
  readonly deadlineMs: number;
  readonly seal: (session: Session) => string;
  readonly draining: Ending;
}
