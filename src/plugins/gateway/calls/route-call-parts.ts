import type { Dispatcher } from 'undici';
import type { Logger } from '../../../core/logging/index.ts';
import type { Message } from '../mcp/message.ts';
import type { Route } from '../routes/table.ts';
import type { Session } from '../session/sealed-sessions.ts';
import type { Ending } from '../stop.ts';
import type { EventChanges, Rewrite } from '../upstream/rewrite.ts';
import type { Exchange } from './exchange.ts';

/** What a call of one route consists of, beside what is decided about it. */
export interface RouteCallParts {
  readonly exchange: Exchange;
  readonly route: Route;
  /** Of a POST. */
  readonly message: Message | undefined;
  /** Of a request that belongs to one. */
  readonly session: Session | undefined;
  readonly agent: Dispatcher;
  readonly logger: Logger;
  /** URL of the route's protected-resource document, for challenges. */
  readonly metadataUrl: string;
  /** Seals a new session for this caller and route. */
  readonly seal: (session: Session) => string;
  /** For a client that hears several upstreams at one endpoint. */
  readonly events?: EventChanges;
  /** Changes the result of an answer, which is then held whole where it is JSON. */
  readonly result?: Rewrite | undefined;
  /** Ends what would go on for ever. */
  readonly draining: Ending;
}
