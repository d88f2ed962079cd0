import { isObject } from '../../../core/kernel/json.ts';
import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/gateway/key.ts';
import { failed } from '../calls/failed.ts';
import { ended, type LiveCall } from '../calls/live-call.ts';
import type { GatewayParts } from '../calls/parts.ts';
import { documentUrl } from '../discovery/endpoint.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import {
  type Answer,
  COMPLETE,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  plainRefusal,
  result,
  rpcError,
} from '../mcp/answers.ts';
import type { Message } from '../mcp/message.ts';
import { REVISIONS } from '../mcp/protocol.ts';
import type { Session } from '../session/sealed-sessions.ts';
import { type Ending, ending, type Stop } from '../stop.ts';
import { passAnswer } from '../upstream/answer.ts';
import { stopped } from '../upstream/failures.ts';
import type { Told } from '../upstream/inspection.ts';
import { common, noSuch, refusal, withMeta } from './answers.ts';
import { type Branch, branchesTo } from './branch.ts';
import { begin, listOf, type Missing, mergedList } from './merged-answers.ts';
import { mergeStreams, type Sink } from './merged-stream.ts';
import type { Meaning, Selection } from './selection.ts';
import { eventId, fromServer, readEventId } from './server-requests.ts';
import type { Legs, OpenSession } from './sessions.ts';

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

const OK: Told = { outcome: 'ok' };

/** A call to several servers at once, or to the one that it names. */
export class AggregateCall implements LiveCall {
  readonly #parts: AggregateCallParts;
  readonly #missing: Missing[] = [];

  constructor(parts: AggregateCallParts) {
    this.#parts = parts;
  }

  async forward(params: ForwardParams, stop: Stop): Promise<CallEnded> {
    const { exchange, draining, gateway } = this.#parts;
    stop.follow(exchange.gone, draining);
    const told = await this.#carryOut(params, stop).catch((err): Told => {
      if (stop.aborted) return stopped({ exchange }, stop, true);
      return failed(this.#parts, gateway.services.logger, err);
    });
    return ended(exchange, told, params.cost);
  }

  /** Sends what the servers say to a stream that has begun, for as long as its client is there. */
  async listen(params: ForwardParams, stop: Stop): Promise<CallEnded> {
    const { exchange, draining, gateway } = this.#parts;
    stop.follow(exchange.gone, draining);
    const sink: Sink = { open: () => undefined, write: (events) => exchange.write(events) };
    const { clock } = gateway.services;
    const merging = { sink, clock, resumed: undefined, tools: params.tools, stop };
    await mergeStreams(this.#branches(params.routes), merging);
    await ending(stop); // nobody has more to say, yet answers are to come
    return ended(exchange, stopped({ exchange }, stop, true));
  }

  /** Ends the sessions with these servers. */
  end(routes: readonly string[], stop: Ending): Promise<void> {
    return this.#endAll(this.#branches(routes), stop);
  }

  answer(params: AnswerParams): CallEnded {
    const { exchange } = this.#parts;
    exchange.send(plainRefusal(params, this.#parts.message) ?? refusal(this.#parts, params));
    return ended(exchange, { outcome: 'answered' });
  }

  async #carryOut(params: ForwardParams, stop: Ending): Promise<Told> {
    const { exchange, message, meaning } = this.#parts;
    const branches = this.#branches(params.routes);
    if (!message)
      return exchange.method === 'GET' ? this.#stream(branches, params, stop) : this.#close(branches, stop);
    if (message.kind !== 'request') return this.#tell(branches, message, stop);
    if (meaning.route && meaning.message) return this.#pass(branches, meaning.message, params, stop);
    const id = message.id ?? null;
    const field = listOf(message.method);
    if (field !== undefined) {
      const { items, missing } = await mergedList(branches, message, field, params.tools, stop);
      this.#missing.push(...missing);
      return this.#give(result(id, this.#said({ [field]: items }, params.routes)));
    }
    switch (message.method) {
      case 'initialize': {
        const { session, result: said, missing } = await begin(branches, message, stop);
        this.#missing.push(...missing);
        const headers = { 'mcp-session-id': this.#parts.seal(session) };
        return this.#give(result(id, this.#said(said, params.routes), headers));
      }
      case 'server/discover': {
        const capabilities = { tools: {}, prompts: {}, resources: {} };
        return this.#give(
          result(id, this.#said({ supportedVersions: REVISIONS, capabilities }, params.routes)),
        );
      }
      case 'ping':
        return this.#give(result(id, {}));
      case 'resources/read':
      case 'completion/complete':
      case 'resources/subscribe':
      case 'resources/unsubscribe':
      case 'logging/setLevel':
        return this.#firstOf(branches, message, stop);
      default:
        return this.#give(noSuch(this.#parts, message.method));
    }
  }

  #branches(allowed: readonly string[]): readonly Branch[] {
    const { branches, missing } = branchesTo(this.#parts, allowed);
    this.#missing.push(...missing);
    return branches;
  }

  /** A call to one server: its answer streams through, with the server's own requests marked as its own. */
  async #pass(
    branches: readonly Branch[],
    message: Message,
    params: ForwardParams,
    stop: Ending,
  ): Promise<Told> {
    const { gateway, exchange, meaning, seal } = this.#parts;
    const server = meaning.route?.name ?? '';
    const branch = branches.find(({ route }) => route.name === server);
    if (!branch) {
      const reason = this.#missing.find((one) => one.server === server)?.reason ?? 'is not open to this key';
      const error = rpcError(200, message.id ?? null, INTERNAL_ERROR, `The route ${server} ${reason}.`);
      return this.#give(error, { outcome: 'unreachable' });
    }
    const bridged = await branch.isBridged().catch(() => false); // who can't be asked fails below, in words
    return passAnswer(
      {
        exchange,
        route: branch.route,
        message,
        seal,
        metadataUrl: documentUrl(gateway.publicUrl(exchange.headers.host), server),
        events: {
          change: (said) => fromServer(server, said),
          rename: (event) => eventId(server, 'call', event),
        },
        result: bridged ? (given) => ({ ...COMPLETE, ...(given as object) }) : undefined,
      },
      () => branch.ask({ method: 'POST', message, signal: stop }),
      params,
      stop,
    );
  }

  /** Asked of all, answered by the first in order who has an answer: nobody knows whose a resource is. */
  async #firstOf(branches: readonly Branch[], message: Message, stop: Ending): Promise<Told> {
    const heard = await Promise.all(branches.map((branch) => branch.request(message, stop)));
    const answers = heard.flatMap((one) => ('message' in one ? [one.message] : []));
    const found = answers.find((one) => isObject(one.result));
    if (found)
      return this.#give(result(message.id ?? null, { ...common(this.#parts), ...(found.result as object) }));
    const failed = answers.find((one) => isObject(one.error) && one.error.code !== METHOD_NOT_FOUND);
    const told: Told = { outcome: 'rpc_error' };
    if (failed) return this.#give({ status: 200, body: { ...failed, id: message.id } }, told);
    const text = `No server that this key may reach answers ${message.method}.`;
    return this.#give(rpcError(200, message.id ?? null, INVALID_PARAMS, text), told);
  }

  async #tell(branches: readonly Branch[], message: Message, stop: Ending): Promise<Told> {
    const { exchange, meaning } = this.#parts;
    if (message.kind === 'reply' && !meaning.route) {
      return this.#give(
        rpcError(400, null, INVALID_REQUEST, 'Invalid Request: it answers no request of a server here'),
      );
    }
    exchange.send({ status: 202 });
    // Each upstream was told when its session began.
    if (message.method === 'notifications/initialized') return OK;
    const meant = branches.filter(({ route }) => !meaning.route || meaning.route.name === route.name);
    await Promise.all(meant.map((branch) => branch.tell(meaning.message ?? message, stop)));
    return OK;
  }

  async #stream(branches: readonly Branch[], { tools }: ForwardParams, stop: Ending): Promise<Told> {
    const { exchange, gateway } = this.#parts;
    const sink: Sink = {
      open() {
        if (exchange.begun) return;
        exchange.begin(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
        exchange.flush();
      },
      write: (events) => exchange.write(events),
    };
    const resumed = readEventId(exchange.headers['last-event-id']);
    await mergeStreams(branches, { sink, clock: gateway.services.clock, resumed, tools, stop });
    if (stop.aborted) return stopped({ exchange }, stop, true);
    if (!exchange.begun) return this.#give({ status: 405, headers: { allow: 'POST, DELETE' } });
    exchange.end();
    return OK;
  }

  async #close(branches: readonly Branch[], stop: Ending): Promise<Told> {
    await this.#endAll(branches, stop);
    return this.#give({ status: 200 });
  }

  async #endAll(branches: readonly Branch[], stop: Ending): Promise<void> {
    const { legs, session } = this.#parts;
    await Promise.all(branches.map((branch) => branch.close(stop)));
    const routes = branches.map(({ route }) => route.name);
    if (session) legs.end(session, routes);
  }

  /** @param known names that the key may reach */
  #said(body: Readonly<Record<string, unknown>>, known: readonly string[]): object {
    return withMeta(this.#parts, body, known, this.#missing);
  }

  #give(answer: Answer, told: Told = OK): Told {
    this.#parts.exchange.send(answer);
    return told;
  }
}
