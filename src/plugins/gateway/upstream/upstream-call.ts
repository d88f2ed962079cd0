import type { Exchange } from '../exchange.ts';
import type { Message } from '../mcp/message.ts';
import type { Route } from '../routes/route.ts';
import type { Session } from '../session/sealed-sessions.ts';
import type { EventChanges, Rewrite } from './events.ts';

/** What of a call its answer needs on its way from the upstream to the client. */
export interface UpstreamCall {
  readonly exchange: Exchange;
  readonly route: Route;
  /** The JSON-RPC message; undefined unless the request is a POST. */
  readonly message: Message | undefined;
  /** URL of the route's protected-resource document, for challenges. */
  readonly metadataUrl: string;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Seals a new session for this caller and route. */
  seal(session: Session): string;
  /** For a client that hears several upstreams at one endpoint. */
  readonly events?: EventChanges;
  /** Changes the result of an answer, which is then held whole where it is JSON. */
  readonly result?: Rewrite | undefined;
}
