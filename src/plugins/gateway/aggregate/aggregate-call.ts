import { once } from 'node:events';
import { isObject } from '../../../core/kernel/json.ts';
import type { AnswerParams, ForwardParams } from '../../../machines/gateway/call-shapes.ts';
import { GatewayCall } from '../calls/call.ts';
import { documentUrl } from '../discovery/endpoint.ts';
import { COMPLETE, plainRefusal, toolRefusal } from '../mcp/answers.ts';
import {
  type Answer,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  result,
  rpcError,
} from '../mcp/json-rpc.ts';
import type { Message } from '../mcp/message.ts';
import { bindingOf, eraOf, REVISIONS } from '../mcp/protocol.ts';
import { LONGEST_ID, type Session } from '../session/sealed-sessions.ts';
import { passAnswer } from '../upstream/answer.ts';
import { stopped } from '../upstream/failures.ts';
import type { CallOutcome } from '../upstream/inspection.ts';
import {
  type Aggregate,
  type AggregateRequest,
  type AggregateServices,
  ENDPOINT,
  targetOf,
} from './aggregate-request.ts';
import { common, noSuch, refusal, withMeta } from './answers.ts';
import type { Branch } from './branch.ts';
import { branchesTo } from './branches.ts';
import { begin, listOf, mergedList } from './merged-answers.ts';
import { mergeStreams, type Sink } from './merged-stream.ts';
import { type Addressee, addresseeOf, SELECTION_HEADER, type Selection, select } from './selection.ts';
import { eventId, fromServer, readEventId } from './server-requests.ts';
import { type Legs, type OpenSession, openSession } from './sessions.ts';
import { listing, type ToolSearch } from './tool-search.ts';
import { type Missing, TOO_LATE } from './unavailable.ts';

const OK: CallOutcome = { outcome: 'ok' };

/** A call to several servers at once, or to the one that it names. */
export class AggregateCall extends GatewayCall<AggregateServices> {
  readonly selection: Selection;
  readonly addressee: Addressee;
  readonly legs: Legs;
  readonly deadlineMs: number;
  readonly #toolSearch: ToolSearch | undefined;
  readonly #search: unknown;
  #late: AbortSignal | undefined;
  /** None in the stateless revision, and while it begins. */
  session: OpenSession | undefined;
  readonly #missing: Missing[] = [];

  /** @param path of the mount */
  constructor(aggregate: Aggregate, request: AggregateRequest, path: string) {
    const { exchange, key, message, session, search } = request;
    const { gateway, legs, deadlineMs, toolSearch } = aggregate;
    super({ gateway, exchange, key, message, target: targetOf(aggregate, exchange, path, message) });
    this.selection = select(gateway.routes.table, exchange.headers[SELECTION_HEADER]);
    this.addressee = addresseeOf(message, this.selection);
    this.legs = legs;
    this.deadlineMs = deadlineMs;
    this.session = session;
    this.#toolSearch = toolSearch;
    this.#search = search;
  }

  /**
   * Aborted when this request has waited long enough for its upstreams: for all that they do one after the other, but for
   * an answer that streams through. A stream lasts, so each of its attempts has as long.
   */
  readonly deadline = (): AbortSignal => {
    if (this.exchange.method === 'GET') return AbortSignal.timeout(this.deadlineMs);
    this.#late ??= AbortSignal.timeout(this.deadlineMs);
    return this.#late;
  };

  /**
   * Seals a session. An id that would not fit into a header leaves out sessions of upstreams, which are then opened again
   * at their first use.
   */
  seal(session: Session): string {
    const { sessions } = this.gateway;
    const upstream = { ...session.upstream };
    for (;;) {
      const id = sessions.seal({ ...session, upstream }, bindingOf(this.key, ENDPOINT));
      if (id.length <= LONGEST_ID) return id;
      const [longest] = Object.entries(upstream).sort(([, a], [, b]) => b.length - a.length);
      if (!longest) throw new RangeError('a session without upstreams fits');
      delete upstream[longest[0]];
    }
  }

  /** Goes on in the session of a sealed id, if it is this caller's. */
  protected reopen(id: string): void {
    const state = this.gateway.sessions.open(id, bindingOf(this.key, ENDPOINT));
    this.session = state && openSession(id, state);
  }

  /** Sends what the servers say to a stream that has begun, for as long as its client is there. */
  protected async listen({ routes, tools }: ForwardParams): Promise<CallOutcome> {
    const { exchange, gateway, signal } = this;
    const sink: Sink = { open: () => undefined, write: (events) => exchange.write(events) };
    const { clock } = gateway;
    await mergeStreams(this.#branches(routes), { sink, clock, resumed: undefined, tools, stop: signal });
    if (!signal.aborted) await once(signal, 'abort'); // nobody has more to say, yet answers are to come
    return stopped(exchange, signal, true);
  }

  /** Ends the sessions with these servers. */
  protected async endSessions(routes: readonly string[], stop: AbortSignal): Promise<void> {
    const { legs, session } = this;
    const branches = this.#branches(routes);
    await Promise.all(branches.map((branch) => branch.close(stop)));
    const ended = branches.map(({ route }) => route.name);
    if (session) legs.end(session, ended);
  }

  protected override refuse(params: AnswerParams): void {
    const { exchange, message } = this;
    const isSearch = this.#search !== undefined;
    const answer =
      plainRefusal(params, message) ??
      (isSearch ? toolRefusal(message?.id ?? null, params, eraOf(exchange.headers, message)) : undefined);
    exchange.send(answer ?? refusal(this, params));
  }

  protected override async carryOut(params: ForwardParams): Promise<CallOutcome> {
    const { exchange, message, addressee, signal: stop } = this;
    const branches = this.#branches(params.routes);
    if (!message) return exchange.method === 'GET' ? this.#stream(branches, params) : this.#close(params);
    if (message.kind !== 'request') return this.#notify(branches, message);
    if (addressee.route && addressee.message) return this.#pass(branches, addressee.message, params);
    const id = message.id ?? null;
    const field = listOf(message.method);
    if (field !== undefined) {
      const items = await this.#list(branches, message, field, params);
      const servers = branches.map(({ route }) => route.name);
      const shown = field === 'tools' ? this.#toolSearch?.shown(items, servers, exchange.headers) : undefined;
      return this.#send(result(id, this.#withMeta({ [field]: shown ?? items }, params.routes)));
    }
    if (this.#toolSearch && this.#search !== undefined) {
      const items = await this.#list(branches, listing(message), 'tools', params);
      const found = await this.#toolSearch.find(items, this.#search);
      const outcome = found.isError === true ? 'tool_error' : 'ok';
      return this.#send(result(id, this.#withMeta(found, params.routes)), { outcome });
    }
    switch (message.method) {
      case 'initialize': {
        const { session, result: merged, missing } = await begin(branches, message, stop);
        this.#missing.push(...missing);
        const headers = { 'mcp-session-id': this.seal(session) };
        return this.#send(result(id, this.#withMeta(merged, params.routes), headers));
      }
      case 'server/discover': {
        const capabilities = { tools: {}, prompts: {}, resources: {} };
        return this.#send(
          result(id, this.#withMeta({ supportedVersions: REVISIONS, capabilities }, params.routes)),
        );
      }
      case 'ping':
        return this.#send(result(id, {}));
      case 'resources/read':
      case 'completion/complete':
      case 'resources/subscribe':
      case 'resources/unsubscribe':
      case 'logging/setLevel':
        return this.#firstOf(branches, message);
      default:
        return this.#send(noSuch(this, message.method));
    }
  }

  async #list(
    branches: readonly Branch[],
    message: Message,
    field: string,
    { tools }: ForwardParams,
  ): Promise<readonly unknown[]> {
    const { items, missing } = await mergedList(branches, message, field, tools, this.signal);
    this.#missing.push(...missing);
    return items;
  }

  #branches(allowed: readonly string[]): readonly Branch[] {
    const { branches, missing } = branchesTo(this, allowed);
    this.#missing.push(...missing);
    return branches;
  }

  /** A call to one server: its answer streams through, with the server's own requests marked as its own. */
  async #pass(
    branches: readonly Branch[],
    message: Message,
    { tools, cost }: ForwardParams,
  ): Promise<CallOutcome> {
    const { gateway, exchange, addressee, signal } = this;
    const server = addressee.route?.name ?? '';
    const branch = branches.find(({ route }) => route.name === server);
    if (!branch) {
      const reason = this.#missing.find((one) => one.server === server)?.reason ?? 'is not open to this key';
      const error = rpcError(200, message.id ?? null, INTERNAL_ERROR, `The route ${server} ${reason}.`);
      return this.#send(error, { outcome: 'unreachable' });
    }
    const without = await branch.whyWithoutToken(signal);
    if (without !== undefined) {
      const error = rpcError(200, message.id ?? null, INTERNAL_ERROR, `The route ${server} ${without}.`);
      return this.#send(error, { outcome: 'unreachable' });
    }
    const bridged = await branch.isBridged().catch(() => false); // who can't be asked fails below, in words
    const outcome = await passAnswer(
      {
        exchange,
        route: branch.route,
        message,
        signal,
        seal: (session) => this.seal(session),
        metadataUrl: documentUrl(gateway.publicUrl(exchange.headers.host), server),
        events: {
          change: (said) => fromServer(server, said),
          rename: (event) => eventId(server, 'call', event),
        },
        result: bridged ? (given) => ({ ...COMPLETE, ...(given as object) }) : undefined,
      },
      () => branch.ask({ method: 'POST', message, signal }),
      { tools, cost },
    );
    branch.ended(outcome.outcome, message.method);
    return outcome;
  }

  /** Asked of all, answered by the first in order who has an answer: nobody knows whose a resource is. */
  async #firstOf(branches: readonly Branch[], message: Message): Promise<CallOutcome> {
    const heard = await Promise.all(branches.map((branch) => branch.request(message, this.signal)));
    const answers = heard.flatMap((one) => ('message' in one ? [one.message] : []));
    const found = answers.find((one) => isObject(one.result));
    if (found)
      return this.#send(result(message.id ?? null, { ...common(this), ...(found.result as object) }));
    const failed = answers.find((one) => isObject(one.error) && one.error.code !== METHOD_NOT_FOUND);
    const outcome: CallOutcome = { outcome: 'rpc_error' };
    if (failed) return this.#send({ status: 200, body: { ...failed, id: message.id } }, outcome);
    const isLate = heard.length > 0 && heard.every((one) => 'reason' in one && one.reason === TOO_LATE);
    if (isLate) {
      const late = rpcError(
        200,
        message.id ?? null,
        INTERNAL_ERROR,
        `No server answers ${message.method} in time.`,
      );
      return this.#send(late, { outcome: 'timed_out' });
    }
    const text = `No server that this key may reach answers ${message.method}.`;
    return this.#send(rpcError(200, message.id ?? null, INVALID_PARAMS, text), outcome);
  }

  async #notify(branches: readonly Branch[], message: Message): Promise<CallOutcome> {
    const { exchange, addressee } = this;
    if (message.kind === 'reply' && !addressee.route) {
      return this.#send(
        rpcError(400, null, INVALID_REQUEST, 'Invalid Request: it answers no request of a server here'),
      );
    }
    exchange.send({ status: 202 });
    // Each upstream got this notification when its session began.
    if (message.method === 'notifications/initialized') return OK;
    const addressed = branches.filter(({ route }) => !addressee.route || addressee.route.name === route.name);
    await Promise.all(addressed.map((branch) => branch.notify(addressee.message ?? message, this.signal)));
    return OK;
  }

  async #stream(branches: readonly Branch[], { tools }: ForwardParams): Promise<CallOutcome> {
    const { exchange, gateway, signal: stop } = this;
    const sink: Sink = {
      open() {
        if (exchange.begun) return;
        exchange.begin(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
        exchange.flush();
      },
      write: (events) => exchange.write(events),
    };
    const resumed = readEventId(exchange.headers['last-event-id']);
    await mergeStreams(branches, { sink, clock: gateway.clock, resumed, tools, stop });
    if (stop.aborted) return stopped(exchange, stop, true);
    if (!exchange.begun) return this.#send({ status: 405, headers: { allow: 'POST, DELETE' } });
    exchange.end();
    return OK;
  }

  async #close({ routes }: ForwardParams): Promise<CallOutcome> {
    await this.endSessions(routes, this.signal);
    return this.#send({ status: 200 });
  }

  /** @param known names that the key may reach */
  #withMeta(body: Readonly<Record<string, unknown>>, known: readonly string[]): object {
    return withMeta(this, body, known, this.#missing);
  }

  #send(answer: Answer, outcome: CallOutcome = OK): CallOutcome {
    this.exchange.send(answer);
    return outcome;
  }
}
